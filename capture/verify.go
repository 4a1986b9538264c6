package capture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"rolltap/internal/jsonx"
)

// FindingKind says what is wrong.
type FindingKind string

const (
	FoundDamaged  FindingKind = "damaged"        // a line that is no JSON object
	FoundTorn     FindingKind = "torn"           // the last line has no newline
	FoundHole     FindingKind = "hole"           // NUL bytes in front of a record, which is kept
	FoundCallID   FindingKind = "duplicate_call" // a model_call_id for the second time in the store
	FoundSeq      FindingKind = "duplicate_seq"  // a (writer, seq) for the second time in its rollout
	FoundDisagree FindingKind = "disagree"       // a note: members of a record that cannot both be true
	FoundMarked   FindingKind = "incomplete"     // a note: the rollout has an incomplete marker
	FoundGap      FindingKind = "gap"            // a note: numbers are missing in a writer's seq
	FoundTokens   FindingKind = "tokens"         // token files that are not what they should be
	FoundMasked   FindingKind = "masked"         // a note: tokens of the rollout are lost, or not written yet
	missingListed             = 8                // numbers that a gap names
)

// Note reports whether the finding is no damage of lines, which are whole, but a known loss or a doubt: it counts only where the caller
// is strict.
func (k FindingKind) Note() bool {
	return k == FoundMarked || k == FoundGap || k == FoundDisagree || k == FoundMasked
}

// Finding is one thing that is wrong in a store.
type Finding struct {
	Kind    FindingKind
	Rollout string
	File    string // name inside the store's folder
	Line    int    // physical line, from 1; 0 when it is about the whole file
	Detail  string // for people; never quotes a record's content
}

// String is "file:line: kind: detail".
func (f Finding) String() string {
	place := f.File
	if f.Line > 0 {
		place += ":" + strconv.Itoa(f.Line)
	}
	return place + ": " + string(f.Kind) + ": " + f.Detail
}

// Report counts what Verify read and found.
type Report struct {
	Rollouts, Records int
	Found             map[FindingKind]int // a gap counts once for each writer
}

// Clean reports whether every line is whole and stands once. With strict, notes count too.
func (r Report) Clean(strict bool) bool {
	for k, n := range r.Found {
		if n > 0 && (strict || !k.Note()) {
			return false
		}
	}
	return true
}

// Verify reads every line of a store and tells found what is wrong, in the order of the file names. It changes nothing and
// may run beside writers: a last line without its newline is looked at again under the lock, since it may only be a write
// that is going on. It keeps some fifty bytes for each record. The error is about reading, not about what was found; the
// files behind an unreadable one are still verified. What only a dead writer's journal holds is brought back by Replay, not
// by Verify.
func Verify(dir string, found func(Finding)) (Report, error) {
	ids, err := Rollouts(dir)
	if err != nil {
		return Report{}, err
	}
	v := verifier{dir: dir, found: found, report: Report{Rollouts: len(ids), Found: map[FindingKind]int{}}, calls: map[[16]byte]place{}, ids: ids, members: recordMembers()}
	var errs []error
	for i := range ids {
		if err := v.rollout(i); err != nil {
			errs = append(errs, fmt.Errorf("verify %s: %w", ids[i], err))
		}
	}
	return v.report, errors.Join(errs...)
}

// place is where a call id was seen first.
type place struct{ rollout, line int32 }

type seqKey struct {
	writer string
	seq    int64
}

type verifier struct {
	dir    string
	ids    []string
	found  func(Finding)
	report Report
	calls  map[[16]byte]place

	members []string // of a record that are looked at
}

func (v *verifier) tell(kind FindingKind, rollout, file string, line int, format string, args ...any) {
	v.report.Found[kind]++
	if v.found != nil {
		v.found(Finding{Kind: kind, Rollout: rollout, File: file, Line: line, Detail: fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) rollout(i int) error {
	id := v.ids[i]
	file := id + dataSuffix
	if Marked(v.dir, id) {
		v.tell(FoundMarked, id, id+markerSuffix, 0, "records were late or lost")
	}
	lines, err := OpenLines(v.dir, id)
	if err != nil {
		return err
	}
	defer lines.Close()
	lines.Outline(OutlineFrom)
	seqs := map[seqKey]int{}
	var locked io.Closer
	defer func() {
		if locked != nil {
			locked.Close()
		}
	}()
	for {
		l, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if l.Torn && locked == nil {
			if locked = holdStill(v.dir, id); locked != nil {
				again, err := lines.Next() // nobody writes now: is there more?
				if err == nil {
					l = again
				} else if err != io.EOF {
					return err
				}
			}
		}
		if l.Torn {
			v.tell(FoundTorn, id, file, l.Number, "no newline at the end, %d bytes", l.size)
			if l.Damage != nil {
				continue
			}
		}
		if l.hole {
			v.tell(FoundHole, id, file, l.Number, "NUL bytes in front of it")
		}
		if l.Damage != nil {
			v.tell(FoundDamaged, id, file, l.Number, "%v, %d bytes", l.Damage, l.size)
			continue
		}
		v.report.Records++
		v.record(i, file, l, seqs)
	}
	v.gaps(id, file, seqs)
	return nil
}

// holdStill takes the lock of a data file; nil when that is not to be had soon or not allowed.
func holdStill(dir, id string) io.Closer {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	f, _, err := lockNamed(ctx, osFiles{}, dataPath(dir, id), false)
	if err != nil {
		return nil
	}
	return f
}

// record looks for ids that were there before, and for members that disagree.
func (v *verifier) record(i int, file string, l Line, seqs map[seqKey]int) {
	id := v.ids[i]
	var m [memberCount][]byte
	jsonx.GetAll(l.Raw, v.members, m[:])
	if call, ok := jsonx.Text(m[memberCallID]); ok {
		key := callKey(call)
		if first, twice := v.calls[key]; twice {
			v.tell(FoundCallID, id, file, l.Number, "call %q is also in %s%s:%d", call, v.ids[first.rollout], dataSuffix, first.line)
		} else {
			v.calls[key] = place{int32(i), int32(l.Number)}
		}
	}
	ours := m[memberOwn]
	if jsonx.KindOf(ours) != jsonx.KindObject {
		return
	}
	disagreements(id, &m, func(detail string) { v.tell(FoundDisagree, id, file, l.Number, "%s", detail) })
	writer, ok := jsonx.Text(jsonx.Get(ours, "writer"))
	seq, isInt := jsonx.Int(jsonx.Get(ours, "seq"))
	if !ok || !isInt {
		return
	}
	key := seqKey{writer, seq}
	if first, twice := seqs[key]; twice {
		v.tell(FoundSeq, id, file, l.Number, "writer %q seq %d is also in line %d", writer, seq, first)
	} else {
		seqs[key] = l.Number
	}
}

// callKey is 16 bytes for any id: its value when it is 32 hex digits, as it should be.
func callKey(id string) (key [16]byte) {
	if len(id) == 32 {
		if _, err := hex.Decode(key[:], []byte(id)); err == nil {
			return key
		}
	}
	sum := sha256.Sum256([]byte(id))
	copy(key[:], sum[:])
	return key
}

// gaps tells which numbers are missing, writer by writer. Each counts from 1, and the end of what it wrote is not known.
func (v *verifier) gaps(id, file string, seqs map[seqKey]int) {
	last, have := map[string]int64{}, map[string]int64{}
	for k := range seqs {
		if k.seq > 0 {
			last[k.writer] = max(last[k.writer], k.seq)
			have[k.writer]++
		}
	}
	var writers []string
	for w := range last {
		if have[w] < last[w] {
			writers = append(writers, w)
		}
	}
	slices.Sort(writers)
	for _, w := range writers {
		var missing []string
		for n := int64(1); n < last[w]; n++ {
			if _, ok := seqs[seqKey{w, n}]; ok {
				continue
			}
			if len(missing) == missingListed {
				missing = append(missing, "…")
				break
			}
			missing = append(missing, strconv.FormatInt(n, 10))
		}
		v.tell(FoundGap, id, file, 0, "writer %q: %d of %d records are missing: seq %s", w, last[w]-have[w], last[w], strings.Join(missing, ", "))
	}
}
