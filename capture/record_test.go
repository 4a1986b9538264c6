package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// encoded returns the line of r as it would be the first of a writer.
func encoded(t testing.TB, r *Record) string {
	t.Helper()
	l, err := encode(r, new(memoryPool), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	l.writer, l.seq = "k3x9q2", 17
	var b bytes.Buffer
	if err := l.writeTo(&b, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if len(l.cuts) == 0 {
		if got := l.appendTo(nil); string(got) != b.String() {
			t.Errorf("appendTo and writeTo differ:\n%s%s", got, b.String())
		}
	}
	if int64(b.Len()) > l.size && len(l.cuts) == 0 {
		t.Errorf("a line of %d bytes was counted as %d", b.Len(), l.size)
	}
	return b.String()
}

// TestLayout holds the order of members and the spelling of every value.
func TestLayout(t *testing.T) {
	r := &Record{
		Rollout: "r-1", CallID: "0123456789abcdef0123456789abcdef", Dialect: "messages", ModelRef: "policy",
		Started: time.UnixMicro(1700000000123456), Completed: time.UnixMicro(1700000002500000),
		Latency: 2376544 * time.Microsecond, TTFT: 18 * time.Millisecond, StatusCode: 200, ErrorCategory: "incomplete",
		Request: body("{ \"a\": 1 }\n"), Response: body("data: {}\n\n"), Folded: body(`{"b":2}`), Streamed: true,
		ClientSessionID: "inv-1", UpstreamAttempted: true, ResponseSource: "upstream", UpstreamStatus: 201, LocalReason: "sealed",
		Method: "POST", Path: "/v1/messages", Query: "beta=true", Stream: true, Outcome: "ok", Finish: "stop",
		Losses:   []Loss{{"metadata.user_id", "no_equivalent"}, {"tools[1].web_search", "policy"}},
		Upstream: &Upstream{Dialect: "chat", Path: "/v1/chat/completions", Status: 200, Model: "m", Request: body(`{ }`), Response: body(`{"c":3}`)},
		Usage:    &Usage{12, 5, 0, -1}, Client: Client{"s", "a", "p", "u"}, RequestBytes: 812, ResponseBytes: 2304, Truncated: []string{"upstream.response"},
	}
	want := `{"model_call_id":"0123456789abcdef0123456789abcdef","dialect":"messages","model_ref":{"type":"responses_api_models","name":"policy"},` +
		`"started_at":1700000000.123456,"completed_at":1700000002.5,"latency_ms":2376.54,"latency_ttft_ms":18.0,"status_code":200,"error_category":"incomplete",` +
		`"request":{"a":1},"response":{"b":2},"client_session_id":"inv-1","upstream_attempted":true,"response_source":"upstream","upstream_status_code":201,` +
		`"local_response_reason":"sealed","response_raw":"data: {}\n\n","rolltap":{"v":1,"rollout_id":"r-1","writer":"k3x9q2","seq":17,"method":"POST",` +
		`"path":"/v1/messages","query":"beta=true","stream":true,"outcome":"ok","finish_reason":"stop","losses":[{"path":"metadata.user_id","reason":"no_equivalent"},` +
		`{"path":"tools[1].web_search","reason":"policy"}],"upstream":{"dialect":"chat","path":"/v1/chat/completions","status":200,"model":"m","request":{},"response":{"c":3}},` +
		`"usage":{"prompt_tokens":12,"completion_tokens":5,"cached_tokens":0,"reasoning_tokens":null},"client":{"session":"s","agent":"a","parent_agent":"p","user_agent":"u"},` +
		`"request_bytes":812,"response_bytes":2304,"truncated":["upstream.response"]}}` + "\n"
	if got := encoded(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	least := `{"model_call_id":"","dialect":"","model_ref":null,"started_at":0.0,"completed_at":0.0,"latency_ms":0.0,"latency_ttft_ms":null,"status_code":null,` +
		`"error_category":null,"request":null,"response":null,"upstream_attempted":false,"response_source":null,"upstream_status_code":null,"local_response_reason":null,` +
		`"rolltap":{"v":1,"rollout_id":"","writer":"k3x9q2","seq":17,"method":"","path":"","query":"","stream":false,"outcome":"","finish_reason":null,"losses":[],` +
		`"upstream":null,"usage":null,"client":{},"request_bytes":0,"response_bytes":0,"truncated":[]}}` + "\n"
	if got := encoded(t, &Record{TTFT: -1, Usage: &Usage{-1, -1, -1, -1}}); got != least {
		t.Errorf("got  %s\nwant %s", got, least)
	}
}

// TestBodies holds what becomes of a body: vectors R1, R3 to R9, R22, R23, and what a pedant would try.
func TestBodies(t *testing.T) {
	const none = "\x00"
	big := strings.Repeat("long ", inlineMax/4)
	for _, c := range []struct {
		name, in, object, raw string
		policy                RawPolicy
	}{
		{"R1: an object", `{"error":"boom"}`, `{"error":"boom"}`, none, ""},
		{"R3: no JSON", `{not-json`, `null`, `{not-json`, ""},
		{"R3: an array", `[]`, `null`, `[]`, ""},
		{"R3: white space", " \n", `null`, " \n", ""},
		{"R4: empty", ``, `null`, none, ""},
		{"R5: a byte-order mark", "\ufeff{\"a\":1}", `{"a":1}`, none, ""},
		{"R6: invalid UTF-8", "\xff{", `null`, "\ufffd{", ""},
		{"R7: text", `not json`, `null`, `not json`, ""},
		{"R8: a list", `[1]`, `null`, `[1]`, ""},
		{"R22: integers beyond 64 bits", `{"n":1180591620717411303424}`, `{"n":1180591620717411303424}`, none, ""},
		{"R22: a lone surrogate", `{"s":"\ud800"}`, `{"s":"\ud800"}`, none, ""},
		{"R23: other scripts", `{"s":"café 東京"}`, `{"s":"café 東京"}`, none, ""},
		{"R23: markup", `{"s":"<b>&"}`, `{"s":"<b>&"}`, none, ""},
		{"line separators", "{\"s\":\"a\u2028b\u2029c\u0085d\"}", "{\"s\":\"a\u2028b\u2029c\u0085d\"}", none, ""},
		{"number spelling and key order", `{ "z": 1e3, "a": 1.0, "a": -0 }`, `{"z":1e3,"a":1.0,"a":-0}`, none, ""},
		{"invalid UTF-8 inside an object", "{\"s\":\"\xff\"}", `null`, "{\"s\":\"\ufffd\"}", ""},
		{"NaN", `{"n":NaN}`, `null`, `{"n":NaN}`, ""},
		{"two objects", `{}{}`, `null`, `{}{}`, ""},
		{"control characters and escapes in text", "\x1b[0m\x7f\x00\"\\", `null`, "\x1b[0m\x7f\x00\"\\", ""},
		{"always keeps the text too", `{ "a": 1 }`, `{"a":1}`, `{ "a": 1 }`, RawAlways},
		{"always keeps no empty text", ``, `null`, none, RawAlways},
		{"never keeps no text", `not json`, `null`, none, RawNever},
		{"a long object", `{ "t": "` + big + `" }`, `{"t":"` + big + `"}`, none, ""},
		{"a long text", big, `null`, big, ""},
		{"a long object, always", `{ "t": "` + big + `" }`, `{"t":"` + big + `"}`, `{ "t": "` + big + `" }`, RawAlways},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := encoded(t, &Record{Request: body(c.in), Response: body(c.in), Raw: c.policy, TTFT: -1})
			var m members
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%v in %.300q", err, line)
			}
			check := func(name string, object json.RawMessage, raw *string) {
				if string(object) != c.object {
					t.Errorf("%s: got %.100q, want %.100q", name, object, c.object)
				}
				switch {
				case raw == nil && c.raw != none:
					t.Errorf("%s_raw: absent, want %.100q", name, c.raw)
				case raw != nil && *raw != c.raw:
					t.Errorf("%s_raw: got %.100q, want %.100q", name, *raw, c.raw)
				}
			}
			check("request", m.Request, m.ReqRaw)
			check("response", m.Response, m.RespRaw)
			if i := strings.Index(line, "\n"); i != len(line)-1 {
				t.Errorf("newline at %d of %d", i, len(line))
			}
		})
	}
}

// TestStreamed: the text of a stream is kept whatever it looks like, and the object is the folded one.
func TestStreamed(t *testing.T) {
	for _, c := range []struct {
		name, text, folded, object, raw string
		policy                          RawPolicy
	}{
		{"folded", "data: x\n\n", `{ "a":1}`, `{"a":1}`, `"data: x\n\n"`, ""},
		{"nothing folded", "data: x\n\n", ``, `null`, `"data: x\n\n"`, ""},
		{"folded to no object", "data: x\n\n", `[1`, `null`, `"data: x\n\n"`, ""},
		{"text that is an object", `{"a":1}`, ``, `null`, `"{\"a\":1}"`, ""},
		{"never", "data: x\n\n", `{"a":1}`, `{"a":1}`, ``, RawNever},
		{"empty stream", "", ``, `null`, ``, ""},
	} {
		line := encoded(t, &Record{Response: body(c.text), Folded: body(c.folded), Streamed: true, Raw: c.policy})
		if !strings.Contains(line, `"response":`+c.object+`,`) {
			t.Errorf("%s: no response %s in %s", c.name, c.object, line)
		}
		if has := strings.Contains(line, `"response_raw":`); has != (c.raw != "") || !strings.Contains(line, c.raw) {
			t.Errorf("%s: no response_raw %s in %s", c.name, c.raw, line)
		}
	}
}

func TestTruncatedCopiesAreText(t *testing.T) {
	cut := NewCopy(CopyOptions{Max: 2})
	fmt.Fprint(cut, `{}   and more`)
	sent := body(`{"a":1}`)
	sent.Cut(5)
	line := encoded(t, &Record{Request: cut, Truncated: []string{"request", "upstream.request"}, Upstream: &Upstream{Request: sent}})
	for _, want := range []string{`"request":null`, `"request_raw":"{}"`, `"truncated":["request","upstream.request"]`, `"model":"","request_raw":"{\"a\":"}`} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
}

func TestMillisAndSeconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0.0"}, {-1, "0.0"}, {time.Millisecond, "1.0"}, {1234567, "1.23"}, {1500 * time.Microsecond, "1.5"}, {4999, "0.0"}, {5001, "0.01"},
		{time.Hour, "3600000.0"}, {10 * time.Microsecond, "0.01"}, {100 * time.Millisecond, "100.0"},
	} {
		if got := string(appendMillis(nil, c.d)); got != c.want {
			t.Errorf("%d ns: got %s, want %s", c.d, got, c.want)
		}
	}
	for us, want := range map[int64]string{0: "0.0", -5: "0.0", 1: "0.000001", 1700000000100000: "1700000000.1", 1700000000123456: "1700000000.123456"} {
		if got := string(appendUnix(nil, time.UnixMicro(us))); got != want {
			t.Errorf("%d µs: got %s, want %s", us, got, want)
		}
	}
}

// TestV1StaysReadable reads a file of the first format; it is never edited.
func TestV1StaysReadable(t *testing.T) {
	got := readBack(t, "testdata/v1", "example")
	if len(got.records) != 3 || got.damaged != 1 || got.torn != 1 {
		t.Fatalf("%d records, %d damaged, %d torn; want 3, 1, 1", len(got.records), got.damaged, got.torn)
	}
	if m := got.records[2]; m.Ours.Writer != "k3x9q2" || m.Ours.Seq != 3 || *m.RespRaw != "data: [DONE]\n\n" || string(m.Request) != `{"n":1180591620717411303424,"s":"\ud800"}` {
		t.Errorf("the last record is %+v", m)
	}
	if _, err := os.Stat("testdata/v1/README.md"); err != nil {
		t.Error(err)
	}
}

// TestLineMemory: a line that the budget refuses is streamed, says the same, and what one has taken is given back.
func TestLineMemory(t *testing.T) {
	text := `{"t":"` + strings.Repeat("0123456789", freeLine/8) + `"}`
	write := func(l *line) string {
		t.Helper()
		l.writer, l.seq = "k3x9q2", 17
		var b bytes.Buffer
		if err := l.writeTo(&b, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	lines := NewBudget(100 << 10)
	var all []*line
	for range 4 {
		l, err := encode(record("r", "c", text), new(memoryPool), lines)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	for i, l := range all {
		if inMemory := len(l.cuts) == 0; inMemory != (i == 0) { // the second does not fit beside the first
			t.Errorf("line %d is in memory: %v", i, inMemory)
		}
		if got := write(l); got != write(all[0]) {
			t.Errorf("line %d differs: %.200s", i, got)
		}
	}
	small, err := encode(record("r", "c", `{}`), new(memoryPool), NewBudget(0))
	if err != nil || len(small.cuts) > 0 {
		t.Errorf("a small line asks the budget: %v", err)
	}
	for _, l := range append(all, small) {
		l.release()
		l.release() // does nothing more
	}
	if left := lines.left.Load(); left != 100<<10 {
		t.Errorf("%d bytes are left of the budget", left)
	}
	broken := record("r", "c", text)
	broken.Request.Release()
	if l, err := encode(broken, new(memoryPool), lines); err == nil {
		l.release()
	}
	if left := lines.left.Load(); left != 100<<10 {
		t.Errorf("after an error %d bytes are left of the budget", left)
	}
}

// The members of a long line stand in their places whether its bodies are in memory or in files, on both sides of writer and seq.
func TestLongLine_hasTheRequestOfBothSides(t *testing.T) {
	object := func(name string, o CopyOptions) (*Copy, string) {
		c := NewCopy(o)
		text := `{"` + name + `": "` + strings.Repeat(name, inlineMax) + `"}`
		io.WriteString(c, text)
		return c, strings.Replace(text, `": "`, `":"`, 1)
	}
	for name, o := range map[string]CopyOptions{"in memory": {Memory: 4 << 20}, "in files": {}} {
		request, asked := object("a", o)
		upstream, sent := object("b", o)
		line := encoded(t, &Record{Request: request, Response: body(`{"c":1}`), Upstream: &Upstream{Request: upstream, Response: body(`{"d":1}`)}})
		for _, want := range []string{`"request":` + asked + `,"response":{"c":1},`, `"writer":"k3x9q2","seq":17,"method"`, `"model":"","request":` + sent + `,"response":{"d":1}},"usage"`} {
			if strings.Count(line, want) != 1 {
				t.Errorf("%s: %d times %.40s…", name, strings.Count(line, want), want)
			}
		}
		if !json.Valid([]byte(line)) {
			t.Errorf("%s: not valid", name)
		}
	}
}
