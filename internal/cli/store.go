package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rolltap/capture"
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
}

func summarize(dir, id string) (summary, error) {
	s := summary{id: id, prompt: -1, completion: -1, incomplete: capture.Marked(dir, id)}
	lines, err := capture.OpenLines(dir, id)
	if err != nil {
		return s, err
	}
	defer lines.Close()
	if st, err := os.Stat(dataFile(dir, id)); err == nil {
		s.bytes, s.last = st.Size(), st.ModTime()
	}
	var last time.Time
	for {
		l, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !last.IsZero() {
				s.last = last
			}
			return s, nil
		case err != nil:
			return s, err
		case l.Damage != nil:
			s.damaged++
		default:
			c := readCall(l.Raw)
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
