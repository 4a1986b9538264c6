package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

var update = flag.Bool("update", false, "write the golden exposition")

// script makes every family move, most of them more than once.
func script(m *Metrics) {
	m.InFlight(1)
	m.InFlight(1)
	m.InFlight(-1)
	m.Exchange(Exchange{
		Dialect: "messages", UpstreamDialect: "chat", Outcome: "ok", Stream: true,
		Duration: 1200 * time.Millisecond, TTFT: 60 * time.Millisecond, Overhead: 300 * time.Microsecond,
		PromptTokens: 812, GenerationTokens: 40, Finish: "tool_calls", Losses: []string{"policy", "policy", "unknown"},
	})
	// A unary answer has no first token, whatever it says.
	m.Exchange(Exchange{
		Dialect: "chat", UpstreamDialect: "chat", Outcome: "ok",
		Duration: 90 * time.Millisecond, TTFT: 80 * time.Millisecond, Overhead: -1,
		PromptTokens: 15, GenerationTokens: -1, Finish: "stop",
	})
	m.Exchange(Exchange{
		Dialect: "responses", Outcome: "refused", Duration: time.Millisecond,
		TTFT: -1, Overhead: -1, PromptTokens: -1, GenerationTokens: -1,
	})
	m.InterChunk(40 * time.Millisecond)
	m.InterChunk(2 * time.Second)
	m.Keepalive("messages")
	m.Uncaptured("no_prefix")
	m.CaptureRecord("ok")
	m.CaptureRecord("ok")
	m.CaptureRecord("late")
	m.CaptureTruncated("request")
	m.CaptureTruncated("upstream.response")
	m.CaptureTruncated("upstream.response")
	m.CaptureBatch(2, 5000, 7*time.Millisecond)
	m.CaptureFsync(4 * time.Millisecond)
	m.CaptureLockWait(20 * time.Microsecond)
	m.CaptureIncomplete()
	m.StoreLow()
	m.StoreRemoved(4096)
	m.StoreRemoved(1)
	m.StoreFree(func() (int64, error) { return 1 << 40, nil })
}

func scrape(t *testing.T, m *Metrics, accept string) (string, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status: got %d, want 200", w.Code)
	}
	return w.Body.String(), w.Header().Get("Content-Type")
}

// ours drops the go_* and process_* lines, which differ from run to run.
func ours(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestExposition(t *testing.T) {
	m := New(Build{Version: "1.2.3", Commit: "abc123", GoVersion: "go1.26"})
	script(m)
	text, _ := scrape(t, m, "")
	if !strings.Contains(text, "\ngo_goroutines ") || !strings.Contains(text, "\nprocess_start_time_seconds ") {
		t.Error("the go_* or process_* series are missing")
	}
	got := ours(text)
	const golden = "testdata/metrics.prom"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("exposition differs from %s (run with -update and review):\n%s", golden, got)
	}
}

func TestExposition_openMetrics(t *testing.T) {
	m := New(Build{})
	script(m)
	text, kind := scrape(t, m, "application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("got %q without an OpenMetrics end", kind)
	}
	if _, kind := scrape(t, m, "text/plain"); !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("got %q, want text/plain", kind)
	}
}

func TestNamesFollowConventions(t *testing.T) {
	m := New(Build{})
	script(m)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// families names what the registry holds.
func families(t *testing.T, m *Metrics) []string {
	t.Helper()
	fs, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range fs {
		if n := f.GetName(); strings.HasPrefix(n, namespace+"_") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func TestDocListsEveryFamily(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, hit := range regexp.MustCompile(`(?m)^//\trolltap_[a-z_]+`).FindAll(doc, -1) {
		listed = append(listed, string(bytes.TrimPrefix(hit, []byte("//\t"))))
	}
	slices.Sort(listed)
	m := New(Build{})
	script(m)
	if got := families(t, m); !slices.Equal(got, listed) {
		t.Errorf("registered: %q\nin doc.go:  %q", got, listed)
	}
}

// series counts the sample lines of one family.
func series(text, name string) (n int) {
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		if strings.HasPrefix(s.Text(), name+"{") {
			n++
		}
	}
	return n
}

func TestSeriesExistBeforeTheirFirstEvent(t *testing.T) {
	m := New(Build{})
	text, _ := scrape(t, m, "")
	for name, want := range map[string]int{
		"rolltap_requests_total":            0, // no pair was used yet
		"rolltap_finish_total":              7,
		"rolltap_losses_total":              4,
		"rolltap_keepalives_total":          4,
		"rolltap_uncaptured_requests_total": 3,
		"rolltap_capture_records_total":     3,
		"rolltap_capture_truncated_total":   4,
	} {
		if got := series(text, name); got != want {
			t.Errorf("%s: got %d series at start, want %d", name, got, want)
		}
	}
	m.Exchange(Exchange{Dialect: "chat", UpstreamDialect: "chat", Outcome: "ok"})
	text, _ = scrape(t, m, "")
	if got, want := series(text, "rolltap_requests_total"), len(outcomeWords); got != want {
		t.Errorf("requests_total after one pair: got %d series, want %d", got, want)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	m := New(Build{})
	for i := range 500 {
		w := strings.Repeat("x", i+1)
		m.Exchange(Exchange{Dialect: w, UpstreamDialect: w, Outcome: w, Finish: w, Losses: []string{w}})
		m.Exchange(Exchange{Dialect: w, UpstreamDialect: "chat", Outcome: "ok"})
		m.Keepalive(w)
		m.Uncaptured(w)
		m.CaptureRecord(w)
		m.CaptureTruncated(w)
	}
	text, _ := scrape(t, m, "")
	if strings.Contains(text, "xx") {
		t.Error("a foreign word became a label value")
	}
	for line, why := range map[string]string{
		`rolltap_requests_total{dialect="other",outcome="other",upstream_dialect="other"} 500`: "all three words unknown",
		`rolltap_requests_total{dialect="other",outcome="ok",upstream_dialect="chat"} 500`:     "one word unknown",
		`rolltap_finish_total{finish_reason="other"} 500`:                                      "finish",
		`rolltap_losses_total{reason="other"} 500`:                                             "loss",
		`rolltap_keepalives_total{dialect="other"} 500`:                                        "dialect",
		`rolltap_uncaptured_requests_total{reason="other"} 500`:                                "reason",
		`rolltap_capture_records_total{result="other"} 500`:                                    "result",
		`rolltap_capture_truncated_total{body="other"} 500`:                                    "body",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s: %s is missing", why, line)
		}
	}
}

func TestStoreFree_absentWhileUnknown(t *testing.T) {
	m := New(Build{})
	has := func() bool {
		text, _ := scrape(t, m, "")
		return strings.Contains(text, "\nrolltap_store_free_bytes ")
	}
	if has() {
		t.Error("no store: the series must be absent")
	}
	calls := 0
	m.StoreFree(func() (int64, error) { calls++; return 7, nil })
	for range 2 {
		if !has() {
			t.Error("a known store: the series is absent")
		}
	}
	if calls != 2 {
		t.Errorf("the store is read at each scrape: got %d reads, want 2", calls)
	}
	m.StoreFree(func() (int64, error) { return 0, errors.New("stat: gone") })
	if has() {
		t.Error("a failing read must leave the series out, not say 0")
	}
	m.StoreFree(nil)
	if has() {
		t.Error("nil read: the series must be absent")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := New(Build{})
	e := Exchange{
		Dialect: "messages", UpstreamDialect: "chat", Outcome: "ok", Stream: true,
		Duration: time.Second, TTFT: time.Millisecond, PromptTokens: 5, GenerationTokens: 7,
		Finish: "stop", Losses: []string{"policy"},
	}
	m.Exchange(e)
	for name, f := range map[string]func(){
		"Exchange":     func() { m.Exchange(e) },
		"InterChunk":   func() { m.InterChunk(time.Millisecond) },
		"InFlight":     func() { m.InFlight(1) },
		"CaptureBatch": func() { m.CaptureBatch(3, 100, time.Millisecond) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	m := New(Build{})
	const each = 200
	var wg sync.WaitGroup
	for _, d := range []string{"chat", "messages", "responses", "chat"} {
		wg.Go(func() {
			for range each {
				m.InFlight(1)
				m.Exchange(Exchange{Dialect: d, UpstreamDialect: "chat", Outcome: "ok", Losses: []string{"new"}})
				m.InterChunk(time.Millisecond)
				m.InFlight(-1)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			m.StoreFree(func() (int64, error) { return 1, nil })
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, r)
			io.Copy(io.Discard, w.Body)
		}
	})
	wg.Wait()
	text, _ := scrape(t, m, "")
	for _, line := range []string{
		`rolltap_requests_total{dialect="chat",outcome="ok",upstream_dialect="chat"} 400`,
		`rolltap_requests_total{dialect="messages",outcome="ok",upstream_dialect="chat"} 200`,
		`rolltap_in_flight_requests 0`, `rolltap_inter_chunk_seconds_count 800`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	m := New(Build{})
	e := Exchange{Dialect: "chat", UpstreamDialect: "chat", Outcome: "ok", Stream: true, Finish: "stop"}
	b.ReportAllocs()
	for b.Loop() {
		m.Exchange(e)
	}
}

func BenchmarkInterChunk(b *testing.B) {
	m := New(Build{})
	b.ReportAllocs()
	for b.Loop() {
		m.InterChunk(time.Millisecond)
	}
}
