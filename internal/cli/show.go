package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"rolltap/capture"
)

// Show prints what a store holds: the list of rollouts, or the calls of one.
type Show struct {
	Rollout string `arg:"" optional:"" help:"Rollout to read; without it the list of rollouts."`
	Store   string `default:"./rollouts" placeholder:"DIR" help:"Capture folder; ./rollouts without it."`
	JSON    bool   `name:"json" env:"-" help:"For machines: one JSON object, of a rollout with every record whole under calls."`
	Tokens  bool   `env:"-" help:"The token ids that were captured: a row for each call; with --json whole prompts, ids and log probabilities."`
	Follow  bool   `env:"-" help:"Go on while it grows, until interrupted."`

	every time.Duration // how often a followed store is looked at
}

// Help is shown by --help.
func (s *Show) Help() string {
	return `A transcript shows of each call only what the calls before have not shown: new messages, the answer, and what went wrong. Long results and prompts are shortened; --json leaves nothing out.`
}

// Run prints to c until it is done, or with --follow until ctx is.
func (s *Show) Run(ctx context.Context, c *Console) error {
	if s.every == 0 {
		s.every = 500 * time.Millisecond
	}
	if s.Rollout != "" {
		if err := checkID(s.Rollout); err != nil {
			return err
		}
	}
	if err := checkStore(s.Store); err != nil {
		return err
	}
	replay(ctx, c, s.Store)
	switch {
	case s.Tokens && (s.Rollout == "" || s.Follow):
		return &UsageError{errors.New("--tokens shows what there is of one rollout: name it, without --follow")}
	case s.Tokens:
		return s.tokens(c)
	case s.Rollout == "":
		return s.list(ctx, c)
	}
	if !s.Follow && !capture.Exists(s.Store, s.Rollout) {
		return fmt.Errorf("no rollout %s in %s", s.Rollout, s.Store)
	}
	w := bufio.NewWriterSize(c.Out, 64<<10)
	var out records = &people{s: s, c: c, t: newTranscript(c, w), r: newCallReader()}
	if s.JSON {
		out = &machines{s: s, w: w}
	}
	err := out.begin()
	if err == nil {
		err = s.tail(ctx, out)
	}
	return errors.Join(err, out.end(), w.Flush())
}

// wait returns false when ctx is done first.
func (s *Show) wait(ctx context.Context) bool {
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// records is a way to print the lines of one rollout.
type records interface {
	begin() error
	line(*capture.Lines, capture.Line) error
	again() error // the rollout was cleared: what follows is another attempt
	end() error
}

// tail hands every line of the rollout to out, and with --follow those that come.
func (s *Show) tail(ctx context.Context, out records) error {
	for {
		cleared, err := s.file(ctx, out)
		if err != nil || !cleared {
			return err
		}
		if err := out.again(); err != nil {
			return err
		}
	}
}

// file reads one data file to its end, and with --follow on, until ctx is done or the file is another one.
func (s *Show) file(ctx context.Context, out records) (cleared bool, err error) {
	var was os.FileInfo
	for {
		if was, err = capture.Stat(s.Store, s.Rollout); !s.Follow || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if !s.wait(ctx) {
			return false, nil
		}
	}
	lines, err := capture.OpenLines(s.Store, s.Rollout)
	if err != nil {
		return false, err
	}
	defer lines.Close()
	lines.Outline(capture.OutlineFrom)
	for {
		l, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) && !s.Follow:
			return false, nil
		case errors.Is(err, io.EOF):
			if !s.wait(ctx) {
				return false, nil
			}
			switch is, err := capture.Stat(s.Store, s.Rollout); {
			case errors.Is(err, fs.ErrNotExist), err == nil && was != nil && !os.SameFile(was, is):
				return true, nil
			case err != nil:
				return false, err // something else has its name now
			}
			continue
		case err != nil:
			return false, err
		case l.Torn && s.Follow:
			continue // it comes again when its end is there
		}
		if err := out.line(lines, l); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, nil
		}
	}
}

// people prints a transcript.
type people struct {
	s     *Show
	c     *Console
	t     *transcript
	r     *callReader
	total summary
}

func (p *people) begin() error {
	p.total = summary{prompt: -1, completion: -1}
	fmt.Fprintf(p.t.w, "%s  %s\n\n", p.c.paint(bold, "rollout "+p.s.Rollout), p.c.paint(dim, inertLine(dataFile(p.s.Store, p.s.Rollout))))
	return p.t.w.Flush()
}

func (p *people) line(_ *capture.Lines, l capture.Line) error {
	var c call
	err := l.Damage
	if err == nil {
		c, err = p.r.read(l.Raw)
	}
	if err != nil {
		p.total.damaged++
		return p.t.damaged(l.Index+1, l.Number, err)
	}
	p.total.add(c)
	if l.Cut {
		c.outlined = l.Size()
	}
	return p.t.call(l.Index+1, c)
}

func (p *people) again() error {
	p.t = newTranscript(p.c, p.t.w)
	fmt.Fprintf(p.t.w, "%s\n\n", p.c.paint(yellow, "the rollout was cleared"))
	return p.begin()
}

func (p *people) end() error {
	t := p.total
	parts := []string{plural(t.calls, "call")}
	if t.prompt >= 0 || t.completion >= 0 {
		parts = append(parts, count(t.prompt)+" → "+count(t.completion)+" tokens")
	}
	text := p.c.paint(dim, strings.Join(parts, ", "))
	for _, bad := range []struct {
		n    int64
		word string
	}{{t.errors, "failed call"}, {t.damaged, "damaged line"}} {
		if bad.n > 0 {
			text += p.c.paint(red, ", "+plural(bad.n, bad.word))
		}
	}
	if capture.Marked(p.s.Store, p.s.Rollout) {
		text += p.c.paint(red, ", incomplete: at least one record was lost or late")
	}
	_, err := fmt.Fprintln(p.t.w, text)
	return err
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// machines prints one object, record by record, as the file has them.
type machines struct {
	s       *Show
	w       *bufio.Writer
	n       int
	damaged []int
}

func (m *machines) begin() error {
	fmt.Fprintf(m.w, `{"rollout_id":%q,"calls":[`, m.s.Rollout)
	return m.w.Flush()
}

func (m *machines) line(lines *capture.Lines, l capture.Line) error {
	if l.Damage != nil {
		m.damaged = append(m.damaged, l.Number)
		return nil
	}
	if m.n++; m.n > 1 {
		m.w.WriteByte(',')
	}
	m.w.WriteByte('\n')
	if err := lines.Copy(m.w, l); err != nil {
		return err
	}
	return m.w.Flush()
}

// again has nothing to say: the calls of a new attempt follow those of the old one, and their ids tell them apart.
func (m *machines) again() error { return nil }

func (m *machines) end() error {
	damaged, err := json.Marshal(append([]int{}, m.damaged...))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.w, "\n],\"damaged_lines\":%s,\"incomplete\":%t}\n", damaged, capture.Marked(m.s.Store, m.s.Rollout))
	return err
}

// list prints all rollouts, and with --follow again whenever one has changed. The error is about those that cannot be read.
func (s *Show) list(ctx context.Context, c *Console) error {
	known := map[string]summary{}
	for first := true; ; first = false {
		all, changed, err := s.look(ctx, known)
		if err != nil {
			return err
		}
		if first || changed {
			if err := s.print(c, all, !first); err != nil {
				return err
			}
		}
		if !s.Follow || !s.wait(ctx) {
			var errs []error
			for _, r := range all {
				errs = append(errs, r.err)
			}
			return errors.Join(errs...)
		}
	}
}

// look summarizes the store; a rollout whose file has the size that it had is not read again, unless it could not be.
func (s *Show) look(ctx context.Context, known map[string]summary) (all []summary, changed bool, err error) {
	ids, err := capture.Rollouts(s.Store)
	if err != nil {
		return nil, false, &UsageError{fmt.Errorf("store: %w", err)}
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return all, false, nil
		}
		old, ok := known[id]
		var size int64
		if st, err := capture.Stat(s.Store, id); err == nil {
			size = st.Size()
		}
		if same := old.bytes == size && old.incomplete == capture.Marked(s.Store, id); !ok || !same || old.err != nil {
			is := summarize(s.Store, id)
			changed = changed || !ok || !same || is.err == nil || is.err.Error() != old.err.Error()
			known[id], old = is, is
		}
		all = append(all, old)
	}
	return all, changed, nil
}

func (s *Show) print(c *Console, all []summary, again bool) error {
	if s.JSON {
		return s.printJSON(c.Out, all)
	}
	if len(all) == 0 {
		c.note("no rollouts in " + inertLine(s.Store))
		return nil
	}
	rows := [][]cell{heads("rollout", ">calls", ">prompt", ">completion", ">errors", ">size", "last activity", "")}
	for _, r := range all {
		errs, remarks := plain, []string{}
		if r.errors > 0 {
			errs = red
		}
		if r.incomplete {
			remarks = append(remarks, "incomplete")
		}
		if r.damaged > 0 {
			remarks = append(remarks, plural(r.damaged, "damaged line"))
		}
		if r.err != nil {
			remarks = append(remarks, "unreadable")
		}
		last := "-"
		if !r.last.IsZero() {
			last = r.last.In(c.zone()).Format(time.DateTime)
		}
		rows = append(rows, []cell{
			{text: r.id, style: bold}, {text: fmt.Sprint(r.calls), right: true},
			{text: count(r.prompt), right: true}, {text: count(r.completion), right: true},
			{text: fmt.Sprint(r.errors), style: errs, right: true}, {text: size(r.bytes), right: true},
			{text: last}, {text: strings.Join(remarks, ", "), style: red},
		})
	}
	if again {
		fmt.Fprintln(c.Out)
	}
	return c.table(c.Out, rows)
}

func (s *Show) printJSON(w io.Writer, all []summary) error {
	type row struct {
		ID         string  `json:"rollout_id"`
		Calls      int64   `json:"calls"`
		Prompt     *int64  `json:"prompt_tokens"`
		Completion *int64  `json:"completion_tokens"`
		Errors     int64   `json:"errors"`
		Damaged    int64   `json:"damaged_lines"`
		Incomplete bool    `json:"incomplete"`
		Bytes      int64   `json:"bytes"`
		Last       *string `json:"last_activity"`
		Unreadable string  `json:"unreadable,omitempty"`
	}
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	rows := make([]row, len(all))
	for i, r := range all {
		rows[i] = row{r.id, r.calls, known(r.prompt), known(r.completion), r.errors, r.damaged, r.incomplete, r.bytes, nil, ""}
		if r.err != nil {
			rows[i].Unreadable = r.err.Error()
		}
		if !r.last.IsZero() {
			last := r.last.UTC().Format(time.RFC3339Nano)
			rows[i].Last = &last
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"rollouts": rows})
}
