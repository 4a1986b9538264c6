package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rolltap/capture"
	"rolltap/capture/derive"
)

// checkStore refuses a folder that cannot be listed before anything is printed about it.
func checkStore(dir string) error {
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	if err != nil {
		return &UsageError{fmt.Errorf("store: %w", err)}
	}
	return nil
}

// replayTime bounds the replay in front of reading.
const replayTime = 30 * time.Second

// replay brings back what a power cut took from a store whose writers are dead, before it is read. What cannot be done is no
// error: the store is then read as it is, and the person at the keyboard is told.
func replay(ctx context.Context, c *Console, dir string) {
	ctx, cancel := context.WithTimeoutCause(ctx, replayTime, fmt.Errorf("not done within %s", replayTime))
	defer cancel()
	var lines, failed int64
	rollouts := map[string]bool{}
	var first error
	err := capture.Replay(ctx, dir, func(e capture.ReplayEvent) {
		switch e.Kind {
		case capture.ReplayRestored:
			rollouts[e.Rollout] = true
			lines += int64(e.Lines)
		case capture.ReplayDamaged:
			c.note(inertLine(fmt.Sprintf("journal %s is damaged and was kept aside: %v", e.Segment, e.Err)))
		case capture.ReplayFailed:
			if failed++; first == nil {
				first = e.Err
			}
		}
	})
	if lines > 0 {
		c.note(fmt.Sprintf("brought back from the journal: %s of %s", plural(lines, "line"), plural(int64(len(rollouts)), "rollout")))
	}
	if err == nil {
		return
	}
	if first == nil {
		first = err
	}
	text := fmt.Sprintf("not all of the journal could be replayed, lines that a power cut took may be missing: %v", first)
	if failed > 1 {
		text += fmt.Sprintf(" (and %d more)", failed-1)
	}
	c.note(inertLine(text))
}

func checkID(id string) error {
	if !capture.ValidID(id) {
		return &UsageError{fmt.Errorf("%q is no rollout id: letters, digits, dots, dashes and underscores, at most 200, the first a letter or digit", id)}
	}
	return nil
}

// dataFile is where the records of a rollout are (the store's documented name).
func dataFile(dir, id string) string { return filepath.Join(dir, id+".capture.jsonl") }

// summary is what the list tells of a rollout.
type summary struct {
	id                 string
	calls, errors      int64
	damaged            int64
	prompt, completion int64 // below 0: no call has told
	incomplete         bool
	bytes              int64
	last               time.Time // of the last record, else of the file
	err                error     // why its file cannot be read, or not to its end
}

func summarize(dir, id string) summary {
	s := summary{id: id, prompt: -1, completion: -1, incomplete: capture.Marked(dir, id)}
	lines, err := capture.OpenLines(dir, id)
	if err != nil {
		s.err = &derive.Unreadable{Rollout: id, Err: err}
		return s
	}
	defer lines.Close()
	lines.Outline(capture.OutlineFrom)
	if st, err := capture.Stat(dir, id); err == nil {
		s.bytes, s.last = st.Size(), st.ModTime()
	}
	r := newCallReader()
	var last time.Time
	for {
		l, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !last.IsZero() {
				s.last = last
			}
			return s
		case err != nil:
			s.err = &derive.Unreadable{Rollout: id, Err: err}
			return s
		case l.Damage != nil:
			s.damaged++
		default:
			c, err := r.read(l.Raw)
			if err != nil {
				s.damaged++
				continue
			}
			s.add(c)
			if c.completed.After(last) {
				last = c.completed
			}
		}
	}
}

func (s *summary) add(c call) {
	s.calls++
	if c.failed() {
		s.errors++
	}
	if c.prompt >= 0 {
		s.prompt = max(0, s.prompt) + c.prompt
	}
	if c.completion >= 0 {
		s.completion = max(0, s.completion) + c.completion
	}
}
