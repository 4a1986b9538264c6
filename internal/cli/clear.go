package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"rolltap/capture"
	"rolltap/capture/training"
)

// Clear removes rollouts before another attempt is made under their ids.
type Clear struct {
	Rollouts []string `arg:"" optional:"" name:"rollout" help:"Rollouts whose files are removed: records, tokens, marks, seal and damaged lines."`
	Store    string   `default:"./rollouts" placeholder:"DIR" help:"Capture folder; ./rollouts without it."`
	Rows     string   `env:"-" placeholder:"FILE" help:"Rows of a run that are about to be dispatched: their rollouts are removed, too."`
}

// Help is shown by --help.
func (r *Clear) Help() string {
	return `Exactly the rollouts named are removed, each under the lock of its file; one that is not there is fine. A row of --rows names its rollout by _ng_rollout_id, or by _ng_task_index, _ng_rollout_index and _ng_attempt_index; rows without an id are skipped, and one that is damaged or has an id that is none stops all. A sidecar that is running goes on with a new file.`
}

// Run removes nothing when one of the ids is none.
func (r *Clear) Run(ctx context.Context, c *Console) error {
	for _, id := range r.Rollouts {
		if err := checkID(id); err != nil {
			return err
		}
	}
	if err := checkStore(r.Store); err != nil {
		return err
	}
	ids := r.Rollouts
	if r.Rows != "" {
		more, err := r.rowIDs(c)
		if err != nil {
			return err
		}
		ids = append(slices.Clone(ids), more...)
	} else if len(ids) == 0 {
		return &UsageError{errors.New("name the rollouts to clear, or --rows")}
	}
	var errs []error
	for _, id := range ids {
		known := capture.Exists(r.Store, id) || training.Exists(r.Store, id)
		if err := clearRollout(ctx, r.Store, id); err != nil {
			errs = append(errs, err)
			continue
		}
		word := "cleared " + id
		if !known {
			word = id + " was not there"
		}
		if _, err := fmt.Fprintln(c.Out, word); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// clearRollout removes all that a store has of a rollout. The tokens go first: without them its records are still what they say.
func clearRollout(ctx context.Context, dir, id string) error {
	if err := training.Use(ctx, nil, training.Options{Dir: dir}, id, func(s *training.Store) error { return s.Delete(ctx, id) }); err != nil {
		return err
	}
	return capture.Clear(ctx, dir, id)
}

// rowIDs are the rollouts that the rows are of, each once. An error means that one could be missing, so that nothing may be
// dispatched: a new attempt would append to the calls of an old one.
func (r *Clear) rowIDs(c *Console) ([]string, error) {
	f, err := os.Open(r.Rows)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("rows: %w", err)}
	}
	defer f.Close()
	var ids []string
	known := map[string]bool{}
	without, n := int64(0), 0
	for rows := newRowReader(f); ; n++ {
		row, err := rows.next(io.Discard)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, &UsageError{fmt.Errorf("rows: row %d: %w; nothing was cleared", n+1, err)}
		}
		switch id, kind := rowRollout(row); {
		case kind == rowDamaged:
			return nil, &UsageError{fmt.Errorf("rows: row %d is no JSON object; nothing was cleared", n+1)}
		case kind == rowBadID:
			return nil, &UsageError{fmt.Errorf("rows: row %d has an id that is none; nothing was cleared", n+1)}
		case kind == rowNoID:
			without++
		case kind == rowKnown && !known[id]:
			known[id] = true
			ids = append(ids, id)
		}
	}
	if without > 0 {
		c.note(plural(without, "row") + " without an id, skipped")
	}
	return ids, nil
}
