package api

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"time"

	"rolltap/capture"
)

const (
	tailEvery = 200 * time.Millisecond // how often a file that does not grow is looked at
	tailBeat  = 15 * time.Second       // of silence, before a comment says that the connection lives
)

// tail answers with the records of a rollout as they come: those behind the cursor, and then every new one, without an end of its own but
// that of a sealed rollout with nothing in flight.
//
//	id: CURSOR            to be handed back as ?after= or Last-Event-ID
//	event: record         data is the record; damaged: a line that is none; cleared: what follows is another attempt; end: it is sealed and complete
//	data: {…}
func (a *api) tail(w http.ResponseWriter, r *http.Request, id string) {
	after := r.URL.Query().Get("after")
	if after == "" {
		after = r.Header.Get("Last-Event-ID")
	}
	t := &tailing{a: a, id: id, w: bufio.NewWriterSize(w, 64<<10), c: http.NewResponseController(w), r: r}
	if after != "" {
		var err error
		if t.at, err = capture.ParseCursor(after); err != nil {
			fail(w, http.StatusBadRequest, "invalid_request", "after: "+err.Error())
			return
		}
	}
	switch lines, err := capture.ResumeLines(a.Dir, id, t.at); { // behind the head nothing can be said any more
	case err == nil:
		lines.Close()
	case !errors.Is(err, capture.ErrCursor):
		a.broken(w, id, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return // nothing comes behind the head, whose connection the client goes on to use
	}
	t.beat = time.Now()
	if err := t.c.Flush(); err != nil {
		return
	}
	if err := t.run(); err != nil {
		a.cut(r, id, err)
	}
}

// tailing is one reader that stays.
type tailing struct {
	a    *api
	id   string
	w    *bufio.Writer
	c    *http.ResponseController
	r    *http.Request
	at   capture.Cursor
	beat time.Time // of the last byte to the client
}

// run returns nil when there is nothing more to come, or nobody to tell.
func (t *tailing) run() error {
	for {
		// Asked for before the file is read: what is in flight now may still write.
		over, err := t.over()
		if err != nil {
			return err
		}
		if err := t.more(); err != nil {
			return err
		}
		if over {
			return t.event("end", "{}")
		}
		select {
		case <-t.r.Context().Done():
			return nil
		case <-time.After(tailEvery):
		}
		if time.Since(t.beat) > tailBeat {
			t.w.WriteString(": still here\n\n")
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
}

func (t *tailing) over() (bool, error) {
	sealed, err := capture.Sealed(t.a.Dir, t.id)
	if err != nil || !sealed {
		return false, err
	}
	busy, err := capture.Busy(t.a.Dir, t.id)
	return !busy, err
}

// more tells what the file has behind the cursor.
func (t *tailing) more() error {
	lines, err := capture.ResumeLines(t.a.Dir, t.id, t.at)
	if errors.Is(err, capture.ErrCursor) {
		t.at = capture.Cursor{}
		t.w.WriteString("id: " + t.at.String() + "\n")
		if err := t.event("cleared", "{}"); err != nil {
			return err
		}
		lines, err = capture.ResumeLines(t.a.Dir, t.id, t.at)
	}
	if err != nil {
		return err
	}
	defer lines.Close()
	lines.Outline(capture.OutlineFrom)
	for t.r.Context().Err() == nil {
		l, err := lines.Next()
		if err == io.EOF || err == nil && l.Torn {
			t.at = lines.Cursor() // blank lines are behind it, too
			return nil
		}
		if err != nil {
			return err
		}
		t.at = lines.Cursor()
		t.w.WriteString("id: " + t.at.String() + "\n")
		if l.Damage != nil {
			if err := t.event("damaged", "{}"); err != nil {
				return err
			}
			continue
		}
		t.w.WriteString("event: record\ndata: ")
		if err := lines.Copy(t.w, l); err != nil {
			return err
		}
		t.w.WriteString("\n\n")
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailing) event(name, data string) error {
	t.w.WriteString("event: " + name + "\ndata: " + data + "\n\n")
	return t.flush()
}

func (t *tailing) flush() error {
	t.beat = time.Now()
	return errors.Join(t.w.Flush(), t.c.Flush())
}
