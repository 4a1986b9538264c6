package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// gym writes a row for each rollout, with its id and its calls.
func (e *Export) gym(ctx context.Context, c *Console) error {
	ids, out, err := e.open(c)
	if err != nil {
		return err
	}
	defer out.drop()
	p := c.progress("exporting", dataBytes(e.Store, ids))
	defer p.end()
	var unread []error
	for _, id := range ids {
		a, err := derive.Attach(e.Store, id, e.Payloads)
		if err := unreadable(&unread, err); err != nil {
			return err
		}
		p.add(dataBytes(e.Store, []string{id}))
		row := append(jsonx.AppendString([]byte(`{"_ng_rollout_id":`), id), '}')
		if err := derive.WriteWith(out, row, derive.AttachmentName, a.WriteJSON); err != nil {
			return fmt.Errorf("export %s: %w", id, err)
		}
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(append(unread, out.commit())...)
}

// rowCounts is what an export of rows did.
type rowCounts struct {
	rows, attached, calls int64
	empty                 int64 // attached, and the store has no call of it
	gaps                  int64 // attached with a gap of another kind
	noID, badID, damaged  int64
	observed              int64   // rows with observations of the agent, which are not joined
	lines                 []int64 // the first rows that were passed as they are
	unread                []error // of rows whose rollout cannot be read
}

// gymRows copies a file of rows, each with the calls of its rollout.
func (e *Export) gymRows(ctx context.Context, c *Console) error {
	in, err := os.Open(e.Results)
	if err != nil {
		return &UsageError{fmt.Errorf("results: %w", err)}
	}
	defer in.Close()
	out, err := createNew(e.Out, c.Out)
	if err != nil {
		return err
	}
	defer out.drop()
	var all int64
	if st, err := in.Stat(); err == nil {
		all = st.Size()
	}
	p := c.progress("exporting", all)
	defer p.end()
	var n rowCounts
	rows := newRowReader(in)
	for {
		row, err := rows.next(out)
		switch {
		case err == io.EOF:
			if err := out.commit(); err != nil {
				return err
			}
			p.end()
			n.tell(c)
			return errors.Join(n.unread...)
		case errors.Is(err, errLongRow):
			n.rows++
			n.pass(&n.damaged)
			continue
		case err != nil:
			return fmt.Errorf("results: %w", err)
		}
		p.add(int64(len(row)))
		if err := e.gymRow(&n, out, row); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// gymRow writes a row with its attachment, or as it was.
func (e *Export) gymRow(n *rowCounts, out *newFile, row []byte) error {
	id, kind := rowRollout(row)
	if kind != rowBlank {
		n.rows++
	}
	switch kind {
	case rowDamaged:
		n.pass(&n.damaged)
	case rowBadID:
		n.pass(&n.badID)
	case rowNoID:
		n.pass(&n.noID)
	}
	if kind != rowKnown {
		_, err := out.Write(row)
		return err
	}
	a, err := derive.Attach(e.Store, id, e.Payloads)
	if err != nil {
		n.unread = append(n.unread, fmt.Errorf("row %d: %w", n.rows, err)) // its attachment says that, too
	}
	n.attached++
	n.calls += a.Calls()
	for _, g := range a.Gaps() {
		if g.Code == derive.GapNoRecords {
			n.empty++
		} else {
			n.gaps++
			break
		}
	}
	if !jsonx.IsNull(jsonx.Get(row, "ng_agent_observations")) {
		n.observed++
	}
	end := bytes.TrimRight(row, "\r\n")
	if err := derive.WriteWith(out, end, derive.AttachmentName, a.WriteJSON); err != nil {
		return fmt.Errorf("row %d: export %s: %w", n.rows, id, err)
	}
	tail := row[len(end):]
	if len(tail) == 0 {
		tail = []byte{'\n'} // a last row without its line end
	}
	_, err = out.Write(tail)
	return err
}

func (n *rowCounts) pass(kind *int64) {
	*kind++
	if len(n.lines) < 5 {
		n.lines = append(n.lines, n.rows)
	}
}

func (n *rowCounts) tell(c *Console) {
	parts := []string{fmt.Sprintf("%s: %d with %s", plural(n.rows, "row"), n.attached, plural(n.calls, "call"))}
	for _, k := range []struct {
		n    int64
		what string
	}{
		{n.empty, "of them whose rollout has no call in the store"},
		{n.gaps, "of them with another gap"},
		{n.observed, "of them with observations of the agent, which were not joined"},
		{n.noID, "passed without an id"},
		{n.badID, "passed whose id is none"},
		{n.damaged, "damaged, passed as they are"},
	} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	text := strings.Join(parts, ", ")
	if n.lines != nil {
		text += fmt.Sprintf(" (rows %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n.lines)), ", "), "[]"))
		if n.noID+n.badID+n.damaged > int64(len(n.lines)) {
			text += ", …"
		}
		text += ")"
	}
	c.note(text)
}
