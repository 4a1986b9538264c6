package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// place reads a rollout; p is told of that reading and of those that follow. One that cannot be read comes with its error.
func place(ctx context.Context, p *progress, dir, id string) (*trajectory.Rollout, error) {
	r, err := trajectory.Read(dir, id, func(n int64) error {
		p.add(n)
		return ctx.Err()
	})
	if err != nil && r == nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return r, err
}

// trajectory writes a line for each rollout.
func (e *Export) trajectory(ctx context.Context, c *Console) error {
	ids, out, err := e.open(c)
	if err != nil {
		return err
	}
	defer out.drop()
	p := c.progress("exporting", 4*dataBytes(e.Store, ids)) // read once, and a second time for each of three lists
	defer p.end()
	var unread []error
	for _, id := range ids {
		r, err := place(ctx, p, e.Store, id)
		if err := unreadable(&unread, err); err != nil {
			return err
		}
		if err := r.WriteJSON(oneLine{out}, e.Store, e.Payloads); err != nil {
			return fmt.Errorf("export %s: %w", id, err)
		}
		if _, err := out.Write([]byte{'\n'}); err != nil {
			return err
		}
	}
	return errors.Join(append(unread, out.commit())...)
}

// oneLine writes JSON without the line ends between its tokens. Those in texts are escaped.
type oneLine struct{ out *newFile }

func (o oneLine) Write(p []byte) (int, error) {
	for l := range bytes.SplitSeq(p, []byte{'\n'}) {
		if _, err := o.out.Write(l); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// chat writes a line for each rollout, and what it leaves out to the report.
func (e *Export) chat(ctx context.Context, c *Console) error {
	ids, out, err := e.open(c)
	if err != nil {
		return err
	}
	defer out.drop()
	var report *newFile
	if e.Report != "" {
		if report, err = createNew(e.Report, nil); err != nil {
			return err
		}
		defer report.drop()
	}
	p := c.progress("exporting", 2*dataBytes(e.Store, ids))
	defer p.end()
	left, wrote := map[string]int{}, int64(0)
	var unread []error
	for _, id := range ids {
		r, err := place(ctx, p, e.Store, id)
		if err := unreadable(&unread, err); err != nil {
			return err
		}
		told := func(l trajectory.Left) {
			left[l.Reason]++
			if report != nil {
				report.Write(leftLine(r, l)) // an error comes with commit
			}
		}
		ok, err := r.WriteChat(out, e.Store, told)
		if err != nil {
			return fmt.Errorf("export %s: %w", id, err)
		}
		if ok {
			wrote++
		}
	}
	if report != nil {
		if err := report.commit(); err != nil {
			return err
		}
	}
	if err := out.commit(); err != nil {
		return err
	}
	p.end()
	text := fmt.Sprintf("%s of %s", plural(wrote, "line"), plural(int64(len(ids)), "rollout"))
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, fmt.Sprintf("%d %s", left[reason], reason))
	}
	if parts != nil {
		text += "; left out or not learned: " + strings.Join(parts, ", ")
	}
	c.note(text)
	return errors.Join(unread...)
}

// leftLine is a line of the report.
func leftLine(r *trajectory.Rollout, l trajectory.Left) []byte {
	b := append([]byte(nil), `{"rollout_id":`...)
	b = jsonx.AppendString(b, r.ID)
	if l.Call >= 0 {
		b = fmt.Appendf(b, `,"call_index":%d,"model_call_id":`, r.Calls[l.Call].Index)
		b = jsonx.AppendString(b, r.Calls[l.Call].ID)
	}
	b = append(b, `,"reason":`...)
	b = jsonx.AppendString(b, l.Reason)
	if l.Detail != "" {
		b = append(b, `,"detail":`...)
		b = jsonx.AppendString(b, l.Detail)
	}
	return append(b, "}\n"...)
}
