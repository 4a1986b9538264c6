package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rolltap/capture"
	"rolltap/capture/training"
)

// Verify checks every line of a store.
type Verify struct {
	Store  string `default:"./rollouts" placeholder:"DIR" help:"Capture folder; ./rollouts without it."`
	Repair bool   `env:"-" help:"Move damaged lines to <id>.capture.damaged, then verify; nothing is lost."`
	Strict bool   `env:"-" help:"Known losses count too: incomplete marks, gaps in the numbers of records, tokens that were lost."`
	JSON   bool   `name:"json" env:"-" help:"Print one JSON object."`
}

// Help is shown by --help.
func (v *Verify) Help() string {
	return `Names by file and line what is wrong. Exit code 0: every line is whole and stands once. 1: a damaged line, a torn tail, a call twice or token files that are not what they should be (with --strict a known loss, too). 2: no such store. What dead writers left in the journal is brought back into its files first, without --repair, too.`
}

// Run returns ErrFound when the store is not as it should be.
func (v *Verify) Run(ctx context.Context, c *Console) error {
	if err := checkStore(v.Store); err != nil {
		return err
	}
	replay(ctx, c, v.Store) // before a repair, whose files are others to the journal
	w := bufio.NewWriter(c.Out)
	var out findings = &linesOut{c: c, w: w, dir: v.Store}
	if v.JSON {
		out = &objectOut{w: w}
	}
	var failed error
	if v.Repair {
		out.part("repaired")
		_, failed = capture.Repair(ctx, v.Store, out.finding)
	}
	out.part("findings")
	report, err := capture.Verify(v.Store, out.finding)
	if report.Found != nil { // the store could be listed: what cannot be read of it keeps nobody from the rest
		err = errors.Join(err, v.tokens(ctx, &report, out))
	}
	clean := report.Clean(v.Strict) && err == nil && failed == nil
	out.sum(report, clean)
	if ferr := w.Flush(); ferr != nil {
		return ferr
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case !clean:
		return ErrFound
	}
	return nil
}

// tokens proves the token files of the store and adds what is wrong to the report. The error is about files that could not be read.
func (v *Verify) tokens(ctx context.Context, report *capture.Report, out findings) error {
	ids, err := training.Rollouts(v.Store)
	if err != nil {
		return err
	}
	tell := func(f capture.Finding) {
		report.Found[f.Kind]++
		out.finding(f)
	}
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		seen, err := training.Verify(v.Store, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, p := range seen.Problems {
			kind := capture.FoundTokens
			if p.Loss {
				kind = capture.FoundMasked
			}
			tell(capture.Finding{Kind: kind, Rollout: id, File: p.File, Line: p.Line, Detail: p.Text})
		}
		for _, m := range seen.Marks {
			tell(capture.Finding{Kind: capture.FoundMasked, Rollout: id, File: id + ".tokens.state.json", Detail: strings.TrimSpace("marked: " + m.Reason + " " + m.CallID)})
		}
		if seen.Incomplete && len(seen.Marks) == 0 && len(seen.Problems) == 0 {
			tell(capture.Finding{Kind: capture.FoundMasked, Rollout: id, File: id + ".tokens.state.json", Detail: "marked, and nobody said why"})
		}
	}
	return errors.Join(errs...)
}

// findings is a way to print what is found. Errors of the writer come from its Flush.
type findings interface {
	part(name string)
	finding(capture.Finding)
	sum(r capture.Report, clean bool)
}

// linesOut prints one line a finding.
type linesOut struct {
	c        *Console
	w        *bufio.Writer
	dir      string
	repaired bool
}

func (o *linesOut) part(name string) { o.repaired = name == "repaired" }

func (o *linesOut) finding(f capture.Finding) {
	word, s := "", red
	switch {
	case o.repaired:
		word, s = "repaired: ", green
	case f.Kind.Note():
		word, s = "note: ", yellow
	}
	f.File = filepath.Join(o.dir, f.File)
	fmt.Fprintln(o.w, o.c.paint(s, inertLine(word+f.String())))
}

func (o *linesOut) sum(r capture.Report, clean bool) {
	text := plural(int64(r.Rollouts), "rollout") + ", " + plural(int64(r.Records), "record")
	if len(r.Found) == 0 && clean {
		fmt.Fprintln(o.w, o.c.paint(green, text+": every line is whole"))
		return
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(r.Found)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Found[k], k))
	}
	if len(parts) == 0 {
		parts = []string{"not all could be read"}
	}
	s := red
	if clean {
		s = yellow
	}
	fmt.Fprintln(o.w, o.c.paint(s, text+": "+strings.Join(parts, ", ")))
}

// objectOut prints one object with a list for each part.
type objectOut struct {
	w       *bufio.Writer
	open    bool
	further bool
}

func (o *objectOut) part(name string) {
	if o.open {
		o.w.WriteString("],")
	} else {
		o.w.WriteByte('{')
	}
	fmt.Fprintf(o.w, "%q:[", name)
	o.open, o.further = true, false
}

func (o *objectOut) finding(f capture.Finding) {
	if o.further {
		o.w.WriteByte(',')
	}
	o.further = true
	o.write(struct {
		Kind    capture.FindingKind `json:"kind"`
		Note    bool                `json:"note"`
		Rollout string              `json:"rollout_id"`
		File    string              `json:"file"`
		Line    int                 `json:"line"`
		Detail  string              `json:"detail"`
	}{f.Kind, f.Kind.Note(), f.Rollout, f.File, f.Line, f.Detail})
}

func (o *objectOut) sum(r capture.Report, clean bool) {
	found := r.Found
	if found == nil {
		found = map[capture.FindingKind]int{}
	}
	fmt.Fprintf(o.w, `],"rollouts":%d,"records":%d,"clean":%t,"counts":`, r.Rollouts, r.Records, clean)
	o.write(found)
	o.w.WriteString("}\n")
}

func (o *objectOut) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("internal error: " + err.Error()) // strings, numbers and nothing else
	}
	o.w.Write(b)
}
