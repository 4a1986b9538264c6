package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rolltap/capture/derive"
)

// Export writes rollouts for other programs and for people.
type Export struct {
	Rollouts []string `arg:"" optional:"" name:"rollout" help:"Rollouts to export; all without one."`
	Store    string   `default:"./rollouts" placeholder:"DIR" help:"Capture folder; ./rollouts without it."`
	Format   string   `required:"" enum:"gym,chat,html,trajectory" env:"-" help:"What to write: gym, chat, html or trajectory."`
	Out      string   `env:"-" placeholder:"PATH" help:"New file, standard output without it; of html the folder for a page each, or the page when it ends in .html."`
	Results  string   `env:"-" placeholder:"FILE" help:"gym: rows of a run; each gets the calls of its rollout. The file is not changed."`
	Payloads bool     `env:"-" help:"gym, trajectory: with requests and answers."`
	Report   string   `env:"-" placeholder:"FILE" help:"chat: what was left out and why, a JSON line each; else a summary of it is told."`
}

// Help is shown by --help.
func (e *Export) Help() string {
	return `gym adds the member ng_model_call_capture to result rows, by the ids in them (_ng_rollout_id, or _ng_task_index, _ng_rollout_index and _ng_attempt_index); every other byte stays, and rows that are damaged pass as they are. Without --results a row is written for each rollout.

chat writes a JSON line for each rollout, messages and tools as fine-tuning takes them, of the longest conversation whose every turn is proven by the request after it.

html writes one page for each rollout that needs nothing else and loads nothing.

trajectory writes a JSON line for each rollout: turns, tool calls with their results and times, agents, branches, and named gaps for what no record tells.`
}

// Run writes nothing when it is asked for what the format has not.
func (e *Export) Run(ctx context.Context, c *Console) error {
	if err := e.check(); err != nil {
		return &UsageError{err}
	}
	for _, id := range e.Rollouts {
		if err := checkID(id); err != nil {
			return err
		}
	}
	if err := checkStore(e.Store); err != nil {
		return err
	}
	replay(ctx, c, e.Store)
	switch e.Format {
	case "gym":
		if e.Results != "" {
			return e.gymRows(ctx, c)
		}
		return e.gym(ctx, c)
	case "chat":
		return e.chat(ctx, c)
	case "html":
		return e.html(ctx, c)
	case "trajectory":
		return e.trajectory(ctx, c)
	}
	return fmt.Errorf("internal error: format %s", e.Format)
}

func (e *Export) check() error {
	var errs []error
	only := func(set bool, flag string, formats ...string) {
		if set && !slices.Contains(formats, e.Format) {
			errs = append(errs, fmt.Errorf("%s is of --format %s", flag, strings.Join(formats, " and ")))
		}
	}
	only(e.Results != "", "--results", "gym")
	only(e.Payloads, "--payloads", "gym", "trajectory")
	only(e.Report != "", "--report", "chat")
	if e.Report == "-" {
		errs = append(errs, errors.New("--report is a file"))
	}
	if e.Results != "" && len(e.Rollouts) > 0 {
		errs = append(errs, errors.New("rollouts are named by the rows of --results, not by arguments"))
	}
	return errors.Join(errs...)
}

// unreadable collects rollouts that cannot be read, which the export says at its end, when all others are written. Any other error is returned.
func unreadable(unread *[]error, err error) error {
	if u := (*derive.Unreadable)(nil); errors.As(err, &u) {
		*unread = append(*unread, err)
		return nil
	}
	return err
}

// open is how every export to one file begins: the rollouts to export, and the file, which its caller drops or commits.
func (e *Export) open(c *Console) (ids []string, out *newFile, err error) {
	if ids, err = chosen(e.Store, e.Rollouts); err != nil {
		return nil, nil, err
	}
	out, err = createNew(e.Out, c.Out)
	return ids, out, err
}
