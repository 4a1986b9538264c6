package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/training"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a store with the API in front of it.
type served struct {
	t     testing.TB
	dir   string
	store *capture.Store
	url   string
}

func serve(t testing.TB) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	var err error
	if s.store, err = capture.Open(capture.Options{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(New(Options{Dir: s.dir, Mode: 0o660, Log: zap.NewNop()}))
	s.url = srv.URL
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
		if err := s.store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wantMode: what the API makes has the mode of the store's files, whatever the umask.
func (s *served) wantMode(name string) {
	s.t.Helper()
	if st, err := os.Stat(filepath.Join(s.dir, name)); err != nil || st.Mode() != 0o660 {
		s.t.Errorf("%s: %v, %v", name, st.Mode(), err)
	}
}

// write appends lines to a rollout's file as any writer may.
func (s *served) write(id, text string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, id+".capture.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// line is a record of a Chat call.
func line(call string, prompt, completion int, more string) string {
	return fmt.Sprintf(`{"model_call_id":%q,"dialect":"chat","model_ref":null,"started_at":1.5,"completed_at":2.5,"latency_ms":1000.0,"latency_ttft_ms":10.0,"status_code":200,"error_category":null,`+
		`"request":{"model":"m","messages":[]%s},"response":{"id":"r-%s","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}},`+
		`"rolltap":{"v":1,"outcome":"ok","stream":true,"losses":[]}}`+"\n", call, more, call, prompt, completion, prompt+completion)
}

func (s *served) ask(method, path string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// get asks for an object.
func (s *served) get(path string) map[string]any {
	s.t.Helper()
	status, body := s.ask("GET", path)
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil || status != http.StatusOK {
		s.t.Fatalf("GET %s: %d, %v: %s", path, status, err, body)
	}
	return o
}

func (s *served) wantError(method, path string, status int, code string) {
	s.t.Helper()
	got, body := s.ask(method, path)
	if got != status || !strings.Contains(body, `"code":"`+code+`"`) {
		s.t.Errorf("%s %s: %d %s, want %d %s", method, path, got, body, status, code)
	}
}

func TestList(t *testing.T) {
	s := serve(t)
	if got := s.get("/api/rollouts"); len(got["rollouts"].([]any)) != 0 || got["next"] != nil {
		t.Errorf("an empty store: %v", got)
	}
	for _, id := range []string{"c", "a", "b"} {
		s.write(id, line(id, 1, 1, ""))
	}
	if err := capture.Seal(s.dir, "b", 0); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for next := ""; ; {
		page := s.get("/api/rollouts?limit=2&after=" + next)
		for _, r := range page["rollouts"].([]any) {
			r := r.(map[string]any)
			ids = append(ids, fmt.Sprint(r["rollout_id"], " ", r["sealed"], r["incomplete"], r["tokens"], r["bytes"].(float64) > 100))
		}
		if page["next"] == nil {
			break
		}
		next = page["next"].(string)
	}
	if got := strings.Join(ids, " "); got != "a false false false true b true false false true c false false false true" {
		t.Errorf("listed %s", got)
	}
	s.wantError("GET", "/api/rollouts?limit=0", http.StatusBadRequest, "invalid_request")
}

func TestRollout(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 3, 4, "")+"\nno record\n"+line("two", 5, 6, "")+`{"torn":`)
	got := s.get("/api/rollouts/r")
	calls := got["calls"].([]any)
	if len(calls) != 2 || calls[1].(map[string]any)["model_call_id"] != "two" || calls[1].(map[string]any)["call_index"] != 2.0 {
		t.Fatalf("calls %v", calls)
	}
	if got["damaged"] != 2.0 || got["lines"] != 4.0 || got["in_flight"] != false || got["metrics"].(map[string]any)["tokens_in"] != 8.0 {
		t.Errorf("%v", got)
	}
	if calls[0].(map[string]any)["rolltap"] == nil {
		t.Error("a call has nothing of ours")
	}
	sums := s.get("/api/rollouts/r/aggregates")
	if sums["calls"] != nil || sums["metrics"].(map[string]any)["num_calls"] != 2.0 {
		t.Errorf("%v", sums)
	}
	s.write("q", line("three", 7, 8, ""))
	if all := s.get("/api/aggregates"); len(all["rollouts"].([]any)) != 2 || all["total"].(map[string]any)["metrics"].(map[string]any)["tokens_in"] != 15.0 {
		t.Errorf("%v", all)
	}
	s.wantError("GET", "/api/rollouts/nobody", http.StatusNotFound, "no_such_rollout")
	s.wantError("GET", "/api/rollouts/a%2Fb", http.StatusBadRequest, "invalid_rollout_id")
	s.wantError("GET", "/api/rollouts/.journal", http.StatusBadRequest, "invalid_rollout_id")
	s.wantError("GET", "/api/rollouts/r?wait=forever", http.StatusBadRequest, "invalid_request")
}

// A record comes as it stands in the file, however long it is.
func TestCall(t *testing.T) {
	s := serve(t)
	long := line("long", 1, 1, `,"x":"`+strings.Repeat("y", 2*capture.OutlineFrom)+`"`)
	s.write("r", line("one", 3, 4, "")+"\x00\x00"+strings.TrimSpace(long)+"\r\nno record\n")
	for n, want := range []string{line("one", 3, 4, ""), long} {
		if _, got := s.ask("GET", fmt.Sprintf("/api/rollouts/r/calls/%d", n)); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("call %d: %d bytes %.300s, want %d", n, len(got), got, len(want))
		}
	}
	s.wantError("GET", "/api/rollouts/r/calls/2", http.StatusUnprocessableEntity, "damaged")
	s.wantError("GET", "/api/rollouts/r/calls/3", http.StatusNotFound, "no_such_call")
	s.wantError("GET", "/api/rollouts/r/calls/-1", http.StatusBadRequest, "invalid_request")
}

// A scorer that waits sees what was in flight, whoever serves it, and not earlier.
func TestWait(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 1, 1, ""))
	leave, err := s.store.Enter("r")
	if err != nil {
		t.Fatal(err)
	}
	s.wantError("GET", "/api/rollouts/r?wait=complete&timeout=20ms", http.StatusGatewayTimeout, "in_flight")
	s.wantError("POST", "/api/rollouts/r/seal?wait=complete&timeout=20ms", http.StatusGatewayTimeout, "in_flight")
	if s.get("/api/rollouts/r")["in_flight"] != true {
		t.Error("it is not said to be in flight")
	}
	answer := make(chan map[string]any)
	go func() { answer <- s.get("/api/rollouts/r?wait=complete") }()
	select {
	case got := <-answer:
		t.Fatalf("it did not wait: %v", got)
	case <-time.After(50 * time.Millisecond):
	}
	s.write("r", line("two", 1, 1, ""))
	leave()
	if got := <-answer; len(got["calls"].([]any)) != 2 {
		t.Errorf("%v", got)
	}
	s.wantError("GET", "/api/rollouts/other?wait=complete&timeout=10s", http.StatusNotFound, "no_such_rollout")
}

// A request that is refused has changed nothing: a seal is for good.
func TestSeal_refused(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 1, 1, ""))
	for _, query := range []string{"wait=idle", "wait=complete&timeout=soon", "wait=complete&timeout=-1s"} {
		s.wantError("POST", "/api/rollouts/r/seal?"+query, http.StatusBadRequest, "invalid_request")
		if sealed, err := capture.Sealed(s.dir, "r"); sealed || err != nil {
			t.Fatalf("%s: sealed %t, %v", query, sealed, err)
		}
	}
}

// HEAD of what has no end of its own ends: the connection carries the next request.
func TestTail_head(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 1, 1, ""))
	for range 2 { // the second one on the connection of the first
		if status, _ := s.ask("HEAD", "/api/rollouts/r/tail"); status != http.StatusOK {
			t.Errorf("%d", status)
		}
	}
	if s.get("/api/rollouts/r")["lines"] != 1.0 {
		t.Error("the next request is not answered")
	}
}

func TestSealAndClear(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 1, 1, ""))
	if status, body := s.ask("POST", "/api/rollouts/r/seal?wait=complete"); status != http.StatusOK || !strings.Contains(body, `"sealed":true`) {
		t.Errorf("%d %s", status, body)
	}
	s.wantMode("r.capture.sealed")
	if sealed, err := capture.Sealed(s.dir, "r"); !sealed || err != nil {
		t.Errorf("sealed %t, %v", sealed, err)
	}
	for _, want := range []string{`"cleared":true`, `"cleared":false`} {
		if status, body := s.ask("DELETE", "/api/rollouts/r"); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %s", status, body, want)
		}
	}
	if sealed, _ := capture.Sealed(s.dir, "r"); sealed || capture.Exists(s.dir, "r") {
		t.Error("it is still there")
	}
	if status, _ := s.ask("POST", "/api/rollouts/r"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", status)
	}
}

func TestTokens(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"GET /api/rollouts/r/tokens", "POST /api/rollouts/r/tokens/freeze"} {
		method, path, _ := strings.Cut(path, " ")
		s.wantError(method, path, http.StatusNotFound, "no_tokens")
	}
	tokens, err := training.Open(training.Options{Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close(context.Background())
	e := &training.Entry{Rollout: "r", CallID: "c", PromptTokenIDs: []byte("[1,2]"), GenerationTokenIDs: []byte("[3]"), GenerationLogProbs: []byte("[-0.5]"), TokenItem: training.NoItem, Parent: training.Root}
	if err := errors.Join(e.Stamp(), tokens.Begin(t.Context(), "r", "c"), tokens.Put(t.Context(), e)); err != nil {
		t.Fatal(err)
	}
	if got := s.get("/api/rollouts/r/tokens"); got["frozen"] != false || fmt.Sprint(got["calls"].([]any)[0].(map[string]any)["prompt_token_ids"]) != "[1 2]" {
		t.Errorf("%v", got)
	}
	status, body := s.ask("POST", "/api/rollouts/r/tokens/freeze")
	var frozen struct {
		Snapshot string `json:"snapshot_id"`
		Version  int    `json:"version"`
	}
	if err := json.Unmarshal([]byte(body), &frozen); err != nil || status != http.StatusOK || frozen.Snapshot == "" {
		t.Fatalf("%d, %v: %s", status, err, body)
	}
	s.wantMode("r.tokens.state.json")
	if err := tokens.Begin(t.Context(), "r", "d"); !errors.Is(err, training.ErrFrozen) {
		t.Errorf("a frozen rollout takes a call: %v", err)
	}
	drop := "/api/rollouts/r/tokens?snapshot_id=" + frozen.Snapshot
	s.wantError("DELETE", drop, http.StatusBadRequest, "invalid_request")
	s.wantError("DELETE", fmt.Sprintf("%s&version=%d", drop, frozen.Version+1), http.StatusConflict, "other_snapshot")
	if status, body := s.ask("DELETE", fmt.Sprintf("%s&version=%d", drop, frozen.Version)); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	s.wantError("POST", "/api/rollouts/r/tokens/freeze", http.StatusGone, "retired")
}

// event is one of a tail.
type event struct{ id, name, data string }

// follow reads events until the tail ends, or stop says so.
func (s *served) follow(query string, stop func(event) bool) (all []event) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/rollouts/r/tail"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var e event
	lines := bufio.NewReader(res.Body)
	for {
		text, err := lines.ReadString('\n')
		if err == io.EOF {
			return all
		}
		if err != nil {
			s.t.Fatal(err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			all = append(all, e)
			if stop(e) {
				return all
			}
			e = event{}
		}
	}
}

// A tail goes on where its cursor stands, tells of a clear, and ends when the rollout is sealed and nothing is in flight.
func TestTail(t *testing.T) {
	s := serve(t)
	s.write("r", line("one", 1, 1, "")+"no record\n")
	var cursor string
	first := s.follow("", func(e event) bool { cursor = e.id; return e.name == "damaged" })
	if len(first) != 2 || first[0].name != "record" || first[0].data+"\n" != line("one", 1, 1, "") {
		t.Fatalf("%v", first)
	}
	// What comes while it waits, and a line in two pieces.
	torn := line("two", 1, 1, "")
	s.write("r", torn[:20])
	second := make(chan []event)
	go func() {
		second <- s.follow("?after="+cursor, func(e event) bool { cursor = e.id; return true })
	}()
	time.Sleep(2 * tailEvery) // whatever it looks at now is half a line
	s.write("r", torn[20:])
	if got := <-second; len(got) != 1 || got[0].data+"\n" != torn {
		t.Fatalf("%v", got)
	}
	if err := capture.Clear(t.Context(), s.dir, "r"); err != nil {
		t.Fatal(err)
	}
	s.write("r", line("three", 1, 1, "")+"\r\n")
	if err := capture.Seal(s.dir, "r", 0); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range s.follow("?after="+cursor, func(event) bool { return false }) {
		names = append(names, e.name)
	}
	if got := strings.Join(names, " "); got != "cleared record end" {
		t.Errorf("events %s", got)
	}
	s.wantError("GET", "/api/rollouts/r/tail?after=1", http.StatusBadRequest, "invalid_request")
}
