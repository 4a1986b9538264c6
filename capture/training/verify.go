package training

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Problem is one thing that Verify found wrong.
type Problem struct {
	File string // its name in the store
	Line int    // from 1, 0 when it is about the whole file
	Text string
	Loss bool // a call whose tokens are lost, which the rollout knows; anything else is damage
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Verification is what Verify found about one rollout.
type Verification struct {
	Entries    int
	Deltas     int
	Incomplete bool // the state says so, or an intent has no entry
	Frozen     bool
	Retired    bool
	Version    int64 // that the next freeze builds on
	Marks      []Marked
	Withdrawn  map[string]int64
	Problems   []Problem
}

// Verify proves the token files of a rollout: every line is an entry of it and keeps the rules, digests and lengths are those
// of the ids, deltas included, no call is there twice with different payloads, intents have entries, and the state fits. It
// takes no lock and changes nothing; of a rollout that is being written it may complain about what is not finished. The error
// is that of a file which could not be read.
//
// Of an incomplete rollout, intents without an entry are problems; marks are none, they are what is known about it.
func Verify(dir, rollout string) (*Verification, error) {
	if !ValidID(rollout) {
		return nil, fmt.Errorf("verify: %w: %q", ErrInvalidID, rollout)
	}
	v := &verifier{dir: dir, id: rollout, out: &Verification{}}
	for _, step := range []func() error{v.state, v.entries, v.intents, v.files} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("verify %s: %w", rollout, err)
		}
	}
	slices.SortFunc(v.out.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return v.out, nil
}

type verifier struct {
	dir, id string
	out     *Verification
	st      *state // nil when it cannot be read
	chains  Chains
}

func (v *verifier) problem(path string, line int, format string, args ...any) {
	v.out.Problems = append(v.out.Problems, Problem{File: filepath.Base(path), Line: line, Text: fmt.Sprintf(format, args...)})
}

func (v *verifier) state() error {
	path := statePath(v.dir, v.id)
	st, err := readState(readFiles{}, path)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoFile) {
		v.problem(path, 0, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	v.st = st
	v.out.Incomplete, v.out.Frozen, v.out.Retired, v.out.Version = st.incomplete, st.frozen, st.retired, st.version
	v.out.Marks, v.out.Withdrawn = st.marks, st.withdrawn
	return nil
}

func (v *verifier) entries() error {
	path := dataPath(v.dir, v.id)
	v.chains.byCall = map[string]*View{}
	f, size, err := v.open(path)
	if f == nil {
		if err == nil && v.st != nil && v.st.indexed > 0 {
			v.problem(statePath(v.dir, v.id), 0, "indexed %d bytes of entries, which are not there", v.st.indexed)
		}
		return err
	}
	defer f.Close()
	if v.out.Retired {
		v.problem(path, 0, "entries of a retired rollout")
	}
	v.chains.f = f
	r := NewReader(f, 0, size)
	border := v.st == nil || v.st.indexed == 0 || v.st.indexed == size // the index ends at the end of a line
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if d := (*Damage)(nil); errors.As(err, &d) {
			switch {
			case d.Torn:
				v.problem(path, d.Line, "torn: it was being written")
			default:
				v.problem(path, d.Line, "%v", d.Err)
			}
			continue
		}
		if err != nil {
			return err
		}
		border = border || r.Offset() == v.st.indexed
		v.entry(path, e, f)
	}
	if !border {
		v.problem(statePath(v.dir, v.id), 0, "indexed_size %d is no end of a line in %d bytes", v.st.indexed, size)
	}
	for _, e := range v.chains.byCall { // parents may stand behind their children
		if e.PromptIsDelta {
			v.out.Deltas++
		}
		if err := v.chains.Check(e); errors.Is(err, ErrChain) || errors.Is(err, ErrEntry) {
			v.problem(path, e.Line, "call %s: %v", e.CallID, err)
		} else if err != nil {
			return err
		}
	}
	v.index()
	return nil
}

func (v *verifier) entry(path string, e *View, f *os.File) {
	v.out.Entries++
	if e.Rollout != v.id {
		v.problem(path, e.Line, "it is an entry of rollout %q", e.Rollout)
	}
	if !ValidCall(e.CallID) {
		v.problem(path, e.Line, "call id %q", e.CallID)
	}
	if err := e.checkArrays(f); err != nil {
		v.problem(path, e.Line, "call %s: %v", e.CallID, err)
		return
	}
	if old := v.chains.byCall[e.CallID]; old != nil {
		v.problem(path, e.Line, "call %s is on line %d already, %s", e.CallID, old.Line, map[bool]string{
			true: "with the same payload", false: "with another payload",
		}[old.Sum == e.Sum])
		return
	}
	v.chains.byCall[e.CallID] = e
}

// index compares the entries with the state.
func (v *verifier) index() {
	if v.st == nil || v.st.legacy {
		return
	}
	path := statePath(v.dir, v.id)
	for call, sum := range v.st.digests {
		switch e := v.chains.byCall[call]; {
		case e == nil:
			v.problem(path, 0, "call %s has a digest and no entry", call)
		case e.Sum != sum:
			v.problem(path, 0, "call %s has the digest %s, its line %s", call, hexSum(sum), hexSum(e.Sum))
		}
	}
	for call, e := range v.chains.byCall {
		if _, ok := v.st.digests[call]; ok {
			continue
		}
		if e.Offset < v.st.indexed {
			v.problem(path, 0, "call %s is within what is indexed and has no digest", call)
		} else {
			v.out.Version++
		}
	}
}

func (v *verifier) intents() error {
	path := intentsPath(v.dir, v.id)
	f, size, err := v.open(path)
	if f == nil {
		return err
	}
	defer f.Close()
	err = eachIntent(f, size, func(call string, at int64) error {
		if v.chains.byCall[call] == nil {
			v.out.Incomplete = true
			v.problem(path, 0, "call %q, at byte %d, has no entry", call, at)
			v.out.Problems[len(v.out.Problems)-1].Loss = true
		}
		return nil
	})
	if errors.Is(err, ErrDamaged) {
		v.problem(path, 0, "%v", err)
		return nil
	}
	return err
}

// files looks at what stands beside.
func (v *verifier) files() error {
	path := markerPath(v.dir, v.id)
	f, _, err := v.open(path)
	if f == nil {
		return err
	}
	f.Close()
	if v.st != nil && !v.st.incomplete && !v.st.retired {
		v.problem(path, 0, "there is a marker, and the state is not incomplete")
	}
	return nil
}

// open opens a file of the rollout, nil when there is none or it is a problem.
func (v *verifier) open(path string) (*os.File, int64, error) {
	f, err := openRead(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, nil
	case errors.Is(err, ErrNoFile):
		v.problem(path, 0, "%v", ErrNoFile)
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// readFiles opens files of the store for reading only.
type readFiles struct{ osFiles }

func (readFiles) open(path string, _ bool) (file, error) {
	f, err := openRead(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}
