package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rolltap/capture/page"
)

// html writes a page for each rollout: into the folder --out, or the one page to the file or to standard output.
func (e *Export) html(ctx context.Context, c *Console) error {
	ids, err := chosen(e.Store, e.Rollouts)
	if err != nil {
		return err
	}
	single := e.Out == "" || e.Out == "-" || strings.HasSuffix(e.Out, ".html")
	if single && len(ids) != 1 {
		return &UsageError{fmt.Errorf("%s: a page holds one rollout; name one, or a folder with --out", plural(int64(len(ids)), "rollout"))}
	}
	if !single {
		if err := os.MkdirAll(e.Out, 0o750); err != nil {
			return &UsageError{fmt.Errorf("cannot write: %w", err)}
		}
	}
	p := c.progress("exporting", 2*dataBytes(e.Store, ids))
	defer p.end()
	var errs []error
	for _, id := range ids {
		path := e.Out
		if !single {
			path = filepath.Join(e.Out, id+".html")
		}
		err := e.page(ctx, c, p, id, path, c.Out)
		if ctx.Err() != nil || single && err != nil {
			return err
		}
		if err != nil {
			errs = append(errs, err) // the other pages are written all the same
		}
	}
	p.end()
	if !single {
		c.note(fmt.Sprintf("%s in %s", plural(int64(len(ids)-len(errs)), "page"), inertLine(e.Out)))
	}
	return errors.Join(errs...)
}

func (e *Export) page(ctx context.Context, c *Console, p *progress, id, path string, stdout io.Writer) error {
	out, err := createNew(path, stdout)
	if err != nil {
		return err
	}
	defer out.drop()
	r, err := place(ctx, p, e.Store, id)
	if err != nil {
		return err
	}
	if err := page.Write(out, r, page.Options{Dir: e.Store, Zone: c.zone()}); err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	return out.commit()
}
