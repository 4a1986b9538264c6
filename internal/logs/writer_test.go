package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink is the other end. Until stuck is closed nothing is taken, where it is not nil.
type sink struct {
	stuck chan struct{}
	err   error

	mu    sync.Mutex // guards the rest
	text  bytes.Buffer
	times []time.Time
}

func (s *sink) Write(p []byte) (int, error) {
	if s.stuck != nil {
		<-s.stuck
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.times = append(s.times, time.Now())
	return s.text.Write(p)
}

// said is what the sink has taken once nobody can do anything more.
func (s *sink) said() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func say(t *testing.T, w io.Writer, line string) {
	t.Helper()
	if n, err := io.WriteString(w, line); n != len(line) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestLinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := New(&s, nil)
		began := time.Now()
		for i := range 3 {
			say(t, w, fmt.Sprintf("%d\n", i))
			time.Sleep(every / 4)
		}
		if got := s.said(); got != "" {
			t.Errorf("%q is written before its time", got)
		}
		time.Sleep(every)
		if got := s.said(); got != "0\n1\n2\n" || len(s.times) != 1 || s.times[0].Sub(began) != every {
			t.Errorf("%q is written, at %v", got, s.times)
		}
		say(t, w, "3\n")
		if err := w.Sync(); err != nil || s.said() != "0\n1\n2\n3\n" {
			t.Errorf("behind Sync %q is written, %v", s.said(), err)
		}
		say(t, w, strings.Repeat("x", enough)+"\n")
		if got := s.said(); len(got) < enough {
			t.Errorf("much waits: %d bytes are written", len(got))
		}
		say(t, w, "last\n")
		w.Close()
		w.Close()
		say(t, w, "too late\n")
		if got := s.said(); !strings.HasSuffix(got, "\nlast\n") {
			t.Errorf("at the end there is %q", got[len(got)-20:])
		}
	})
}

func TestNobodyWaitsForTheOtherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{stuck: make(chan struct{})}
		var told []int64
		var w *Writer
		w = New(&s, func(n int64) {
			told = append(told, n)
			say(t, w, "lines are missing\n")
		})
		began := time.Now()
		line := strings.Repeat("x", 1023) + "\n"
		const lines = 3 * room / 1024
		for range lines {
			say(t, w, line)
		}
		if err := w.Sync(); err != nil || time.Since(began) != 0 {
			t.Errorf("it takes %s, %v", time.Since(began), err)
		}
		synctest.Wait()
		dropped := w.Dropped()
		if dropped < lines-2*room/1024-1 || dropped >= lines-room/1024+1 {
			t.Errorf("of %d lines %d are dropped", lines, dropped)
		}
		close(s.stuck)
		time.Sleep(2 * every)
		if got := strings.Count(s.said(), "x\n"); int64(got) != lines-dropped || w.Dropped() != dropped {
			t.Errorf("%d lines are written, %d were dropped of %d", got, dropped, lines)
		}
		time.Sleep(2 * every)
		if len(told) != 1 || told[0] != dropped || !strings.HasSuffix(s.said(), "x\nlines are missing\n") {
			t.Errorf("told were %d, want %d", told, dropped)
		}
		w.Close()
	})
}

func TestTheOtherEndIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{err: errors.New("broken pipe")}
		w := New(&s, func(int64) { t.Error("there is nobody to tell") })
		say(t, w, "a\nb\n")
		time.Sleep(2 * every)
		say(t, w, "c\n")
		w.Close()
		if n := w.Dropped(); n != 3 {
			t.Errorf("%d lines are dropped", n)
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{stuck: make(chan struct{})}
		w := New(&s, nil)
		say(t, w, "a\n")
		began := time.Now()
		w.Close()
		if took := time.Since(began); took != grace {
			t.Errorf("it takes %s", took)
		}
		close(s.stuck) // the goroutine ends with its write
	})
}
