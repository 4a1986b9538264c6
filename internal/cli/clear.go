package cli

import (
	"context"
	"errors"
	"fmt"

	"rolltap/capture"
	"rolltap/capture/training"
)

// Clear removes rollouts before another attempt is made under their ids.
type Clear struct {
	Rollouts []string `arg:"" name:"rollout" help:"Rollouts whose files are removed: records, tokens, marks, seal and damaged lines."`
	Store    string   `default:"./rollouts" placeholder:"DIR" help:"Capture folder."`
}

// Help is shown by --help.
func (r *Clear) Help() string {
	return `Exactly the rollouts named are removed, each under the lock of its file; one that is not there is fine. A sidecar that is running goes on with a new file.`
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
	var errs []error
	for _, id := range r.Rollouts {
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
	if training.Exists(dir, id) {
		tokens, err := training.Open(training.Options{Dir: dir})
		if err != nil {
			return err
		}
		err = tokens.Delete(ctx, id)
		if err = errors.Join(err, tokens.Close(ctx)); err != nil {
			return err
		}
	}
	return capture.Clear(ctx, dir, id)
}
