package capture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs the test binary as a writing child when a test started it so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CAPTURE_CHILD_DIR"); dir != "" {
		child(dir)
		os.Exit(0)
	}
	if dir := os.Getenv("CAPTURE_TEST_PRESENT"); dir != "" {
		present(dir)
	}
	if dir := os.Getenv("CAPTURE_UMASK_DIR"); dir != "" {
		underUmask(dir)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child appends for ever, or CAPTURE_CHILD_RECORDS for each writer, and prints the id of every call that was acknowledged.
func child(dir string) {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ids := strings.Split(os.Getenv("CAPTURE_CHILD_ROLLOUTS"), ",")
	limit, _ := strconv.Atoi(os.Getenv("CAPTURE_CHILD_RECORDS"))
	var wg sync.WaitGroup
	var out sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := 0; limit == 0 || i < limit; i++ {
				call := callID()
				text := strings.Repeat("x", (w*7919+i*104729)%9000)
				if i%50 == 49 {
					text = strings.Repeat("y", inlineMax+100) // a streamed line
				}
				r := record(ids[(w+i)%len(ids)], call, `{"n":"`+text+`"}`)
				if err := s.Append(context.Background(), r); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(call)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	if err := s.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var calls atomic.Int64

// callID is unique among processes, too.
func callID() string { return fmt.Sprintf("%016x%016x", os.Getpid(), calls.Add(1)) }

func record(rollout, call, request string) *Record {
	r := &Record{
		Rollout: rollout, CallID: call, Dialect: "chat", Started: time.Unix(1700000000, 0), Completed: time.Unix(1700000001, 0),
		Latency: time.Second, TTFT: -1, StatusCode: 200, Method: "POST", Path: "/v1/chat/completions", Outcome: "ok",
		Request: body(request),
	}
	return r
}

func body(text string) *Copy {
	c := NewCopy(CopyOptions{})
	io.WriteString(c, text)
	return c
}

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	return newStoreOn(t, o, osFiles{})
}

func newStoreOn(t testing.TB, o Options, fsys files) *Store {
	t.Helper()
	s, err := open(o, fsys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil && err != ErrClosed {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// members is the part of a record that tests look at.
type members struct {
	Call      string          `json:"model_call_id"`
	Started   float64         `json:"started_at"`
	Latency   float64         `json:"latency_ms"`
	TTFT      *float64        `json:"latency_ttft_ms"`
	Status    *int            `json:"status_code"`
	Category  *string         `json:"error_category"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
	ReqRaw    *string         `json:"request_raw"`
	RespRaw   *string         `json:"response_raw"`
	Session   *string         `json:"client_session_id"`
	Attempted *bool           `json:"upstream_attempted"`
	Source    *string         `json:"response_source"`
	UpStatus  *int            `json:"upstream_status_code"`
	Reason    *string         `json:"local_response_reason"`
	Ours      struct {
		Rollout   string          `json:"rollout_id"`
		Writer    string          `json:"writer"`
		Seq       int64           `json:"seq"`
		Truncated []string        `json:"truncated"`
		Upstream  json.RawMessage `json:"upstream"`
		Usage     json.RawMessage `json:"usage"`
		Client    json.RawMessage `json:"client"`
	} `json:"rolltap"`
}

type read struct {
	records []members
	damaged int
	torn    int
}

// readBack reads a rollout and fails on anything that the reader and encoding/json see differently.
func readBack(t testing.TB, dir, id string) read {
	t.Helper()
	l, err := OpenLines(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out read
	for {
		line, err := l.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if line.Torn {
			out.torn++
		}
		if line.Damage != nil {
			out.damaged++
			continue
		}
		var m members
		if err := json.Unmarshal(line.Raw, &m); err != nil {
			t.Fatalf("%s line %d: %v", id, line.Number, err)
		}
		out.records = append(out.records, m)
	}
}

func (r read) calls() map[string]int {
	m := map[string]int{}
	for _, c := range r.records {
		m[c.Call]++
	}
	return m
}

// uniqueSeqs fails when a (writer, seq) is there twice.
func (r read) uniqueSeqs(t testing.TB) {
	t.Helper()
	seen := map[seqKey]bool{}
	for _, m := range r.records {
		k := seqKey{m.Ours.Writer, m.Ours.Seq}
		if seen[k] {
			t.Errorf("writer %s seq %d is there twice", k.writer, k.seq)
		}
		seen[k] = true
	}
}

// plant appends bytes as somebody who died inside a write would.
func plant(t testing.TB, dir, id, tail string) {
	t.Helper()
	f, _, err := lockNamed(t.Context(), osFiles{}, dataPath(dir, id), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, tail); err != nil {
		t.Fatal(err)
	}
}

// tally is an Observe that counts.
type tally struct {
	mu                           sync.Mutex
	results                      map[Result]int
	batches, records, incomplete int
	fsyncs, lockWaits, healed    int
	trouble                      []error
}

func (c *tally) observe() Observe {
	c.results = map[Result]int{}
	lock := func(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }
	return Observe{
		Batch:      func(n, _ int, _ time.Duration) { lock(func() { c.batches++; c.records += n }) },
		Fsync:      func(time.Duration) { lock(func() { c.fsyncs++ }) },
		LockWait:   func(time.Duration) { lock(func() { c.lockWaits++ }) },
		Record:     func(r Result) { lock(func() { c.results[r]++ }) },
		Incomplete: func(string) { lock(func() { c.incomplete++ }) },
		Healed:     func(string) { lock(func() { c.healed++ }) },
		Trouble:    func(_ string, err error) { lock(func() { c.trouble = append(c.trouble, err) }) },
	}
}

func (c *tally) result(r Result) int { c.mu.Lock(); defer c.mu.Unlock(); return c.results[r] }

// keepWriting has so many goroutines write without a pause, each with its number, until stop is called, which waits for them.
func keepWriting(writers int, write func(w int)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					write(w)
				}
			}
		})
	}
	return func() { close(done); wg.Wait() }
}

// soon waits for something that another goroutine does.
func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// marks returns the lines of a marker.
func marks(t testing.TB, dir, id string) (lines []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, id+".capture.incomplete"))
	if err != nil {
		return nil
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			t.Fatalf("marker line %q: %v", sc.Text(), err)
		}
		lines = append(lines, m)
	}
	return lines
}
