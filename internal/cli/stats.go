package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// Stats prints what the calls of a store add up to.
type Stats struct {
	Rollouts []string `arg:"" optional:"" name:"rollout" help:"Rollouts to read, call by call; without one all of the store, a line each."`
	Store    string   `default:"./rollouts" placeholder:"DIR" help:"Capture folder; ./rollouts without it."`
	JSON     bool     `name:"json" env:"-" help:"For machines: one JSON object; of rollouts that are named with every derived call record."`
}

// Help is shown by --help.
func (s *Stats) Help() string {
	return `Tokens that nobody told are -. TTFT is the time to the first token of streams; its percentiles are within 1 %. Side calls are titles, compactions and the like, which their requests name. Lines beyond 4 MiB are read in outline, so memory stays small.`
}

// Run prints to c until it is done or ctx is.
func (s *Stats) Run(ctx context.Context, c *Console) error {
	for _, id := range s.Rollouts {
		if err := checkID(id); err != nil {
			return err
		}
	}
	if err := checkStore(s.Store); err != nil {
		return err
	}
	replay(ctx, c, s.Store)
	ids, err := chosen(s.Store, s.Rollouts)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(c.Out, 64<<10)
	named := len(s.Rollouts) > 0
	p := c.progress("reading", dataBytes(s.Store, ids))
	defer p.end()
	var unread []error
	o := derive.SumsOptions{Rollouts: ids, Calls: named, Unreadable: func(err error) { unread = append(unread, err) }, Progress: func(n int64) error {
		p.add(n)
		return ctx.Err()
	}}
	if s.JSON {
		err = derive.WriteSums(w, s.Store, o)
	} else {
		t := &sumsTable{c: c, w: w, dir: s.Store, named: named, progress: p}
		err = derive.EachSums(s.Store, o, t)
	}
	if err != nil {
		return err
	}
	return errors.Join(append(unread, w.Flush())...)
}

// chosen are the rollouts that were named, each of which must exist, or all.
func chosen(dir string, named []string) ([]string, error) {
	if len(named) == 0 {
		ids, err := capture.Rollouts(dir)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("store: %w", err)}
		}
		return ids, nil
	}
	for _, id := range named {
		if !capture.Exists(dir, id) {
			return nil, fmt.Errorf("no rollout %s in %s", id, dir)
		}
	}
	return named, nil
}

// dataBytes is how much there is to read.
func dataBytes(dir string, ids []string) (n int64) {
	for _, id := range ids {
		if st, err := capture.Stat(dir, id); err == nil {
			n += st.Size()
		}
	}
	return n
}

// sumsTable prints tables for people.
type sumsTable struct {
	c     *Console
	w     *bufio.Writer
	dir   string
	named bool
	rows  [][]cell // of rollouts
	calls [][]cell // of the rollout in progress

	progress *progress
}

// Begin starts a rollout.
func (t *sumsTable) Begin(string) {
	t.calls = [][]cell{heads(">call", "dialect", "model", "outcome", "finish", ">TTFT", ">total", ">prompt", ">cached", ">completion", ">reasoning", ">tools", "")}
	if t.rows == nil {
		t.rows = [][]cell{heads("rollout", ">calls", ">errors", ">prompt", ">cached", ">completion", ">reasoning", ">TTFT p50", ">p90", ">p99", ">time", "")}
	}
}

// Call adds a row.
func (t *sumsTable) Call(c *derive.Call) {
	if !t.named {
		return
	}
	used, ttft, total := c.Used(), "-", "-"
	if ms, ok := c.FirstToken(); ok {
		ttft = trajectory.Took(ms)
	}
	if d := millis(c.Latency); d >= 0 {
		total = took(d)
	}
	var remarks []string
	if c.Own.Side != derive.SideNone {
		remarks = append(remarks, string(c.Own.Side))
	} else if c.SubAgent() {
		remarks = append(remarks, "subagent")
	}
	for it := jsonx.Array(c.Own.Losses); it.Next(); {
		remarks = append(remarks, "lost "+text(it.Value(), "path"))
	}
	if c.Own.Truncated != nil {
		remarks = append(remarks, "truncated")
	}
	plainText := func(raw []byte) string { s, _ := jsonx.Text(raw); return inertLine(s) }
	t.calls = append(t.calls, []cell{
		{text: fmt.Sprint(c.Index + 1), right: true}, {text: plainText(c.Dialect)}, {text: plainText(c.Model), style: cyan},
		{text: inertLine(c.Own.Outcome), style: outcomeStyle(c.Own.Outcome)}, {text: inertLine(c.Own.Finish)}, {text: ttft, right: true}, {text: total, right: true},
		{text: count(used.Prompt), right: true}, {text: count(used.Cached), right: true}, {text: count(used.Completion), right: true},
		{text: count(used.Reasoning), right: true}, {text: fmt.Sprint(c.ToolCalls()), right: true}, {text: inertLine(strings.Join(remarks, ", ")), style: yellow},
	})
}

// Rollout ends it.
func (t *sumsTable) Rollout(r derive.RolloutSums) error {
	var remarks []string
	for _, n := range []struct {
		n    int64
		word string
	}{{int64(r.Damaged), "damaged line"}, {r.Truncated, "truncated call"}, {r.SubAgents, "sub-agent call"}} {
		if n.n > 0 {
			remarks = append(remarks, plural(n.n, n.word))
		}
	}
	for _, w := range r.BySide.Words() {
		remarks = append(remarks, fmt.Sprintf("%d %s", r.BySide[w], w))
	}
	if r.Marked {
		remarks = append(remarks, "incomplete")
	}
	if r.Err != nil {
		remarks = append(remarks, "unreadable")
	}
	t.rows = append(t.rows, t.row(r.ID, r.Aggregates, strings.Join(remarks, ", ")))
	if !t.named {
		return nil
	}
	fmt.Fprintf(t.w, "%s  %s\n", t.c.paint(bold, "rollout "+r.ID), t.c.paint(dim, inertLine(dataFile(t.dir, r.ID))))
	if len(t.calls) > 1 {
		if err := t.c.table(t.w, t.calls); err != nil {
			return err
		}
	}
	fmt.Fprintln(t.w)
	return nil
}

func (t *sumsTable) row(id string, a *derive.Aggregates, remarks string) []cell {
	errs := plain
	if a.Errors() > 0 {
		errs = red
	}
	row := []cell{{text: id, style: bold}, {text: fmt.Sprint(a.Calls), right: true}, {text: fmt.Sprint(a.Errors()), style: errs, right: true}, {text: count(a.Used.Prompt.Known()), right: true}}
	share := "-"
	if s, ok := a.CacheShare(); ok {
		share = fmt.Sprintf("%.0f %%", s*100)
	}
	row = append(row, cell{text: share, right: true}, cell{text: count(a.Used.Completion.Known()), right: true}, cell{text: count(a.Used.Reasoning.Known()), right: true})
	for _, q := range []float64{0.5, 0.9, 0.99} {
		text := "-"
		if ms, ok := a.FirstToken.Quantile(q); ok {
			text = trajectory.Took(ms)
		}
		row = append(row, cell{text: text, right: true})
	}
	spent := "-"
	if ms, ok := a.Latency(); ok && ms >= 0 && ms < 1e13 {
		spent = trajectory.Took(ms)
	}
	return append(row, cell{text: spent, right: true}, cell{text: remarks, style: yellow})
}

// Total prints what all add up to.
func (t *sumsTable) Total(a *derive.Aggregates, rollouts int) error {
	t.progress.end()
	if rollouts == 0 {
		t.c.note("no rollouts in " + inertLine(t.dir))
		return nil
	}
	if rollouts > 1 {
		t.rows = append(t.rows, t.row(plural(int64(rollouts), "rollout"), a, ""))
	}
	if err := t.c.table(t.w, t.rows); err != nil {
		return err
	}
	for _, k := range []struct {
		word  string
		tally derive.Tally
	}{{"outcomes", a.ByOutcome}, {"losses", a.ByLoss}, {"side calls", a.BySide}, {"dialects", a.ByDialect}} {
		if len(k.tally) == 0 {
			continue
		}
		var parts []string
		for _, w := range k.tally.Words() {
			parts = append(parts, fmt.Sprintf("%d %s", k.tally[w], inertLine(w)))
		}
		fmt.Fprintf(t.w, "%-10s  %s\n", k.word, strings.Join(parts, ", "))
	}
	return nil
}
