package derive

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

func read(t *testing.T, line string) Call {
	t.Helper()
	var r Reader
	c, err := r.Read([]byte(line), 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSideCalls(t *testing.T) {
	for _, c := range []struct {
		why, dialect, request string
		want                  Side
	}{
		{"an ordinary turn", "messages", `{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"say hi"}]}`, SideNone},
		{"a call without tools says nothing of itself", "chat", `{"messages":[{"role":"user","content":"say hi"}]}`, SideNone},
		{"Claude Code: a schema that has a title only, no tools", "messages", `{"tools":[],"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}},"messages":[{"role":"user","content":[{"type":"text","text":"<session>x"}]}]}`, SideTitle},
		{"a schema with a title among others is structured output", "messages", `{"tools":[],"output_config":{"format":{"schema":{"properties":{"title":{},"body":{}}}}},"messages":[{"role":"user","content":"x"}]}`, SideNone},
		{"opencode: its system prompt", "chat", `{"messages":[{"role":"system","content":"You are a title generator. You output ONLY a thread title."},{"role":"user","content":"x"}]}`, SideTitle},
		{"Claude Code: the words that its compaction begins with", "messages", `{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":[{"type":"tool_result","content":"x"},{"type":"text","text":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."}]}]}`, SideCompaction},
		{"the same words further inside are the user's", "messages", `{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"What does CRITICAL: Respond with TEXT ONLY mean?"}]}`, SideNone},
		{"Codex: a local compaction", "responses", `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"You are performing a CONTEXT CHECKPOINT COMPACTION. Create"}]}]}`, SideCompaction},
		{"Codex: its turn metadata", "responses", `{"input":[{"role":"user","content":"x"}],"client_metadata":{"x-codex-turn-metadata":"{\"request_kind\":\"compaction\"}"}}`, SideCompaction},
		{"Codex: a remote compaction", "responses", `{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`, SideCompaction},
		{"a web search of its own", "messages", `{"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"x"}]}`, SideSearch},
		{"a search among tools", "messages", `{"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"Bash"}],"messages":[{"role":"user","content":"x"}]}`, SideNone},
		{"one token", "messages", `{"max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`, SideProbe},
		{"a sub-agent by its billing line", "messages", `{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2; cc_is_subagent=true;"}],"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"x"}]}`, SideSubAgent},
	} {
		got := read(t, `{"dialect":"`+c.dialect+`","request":`+c.request+`}`)
		if got.Own.Side != c.want {
			t.Errorf("%s: %q, want %q", c.why, got.Own.Side, c.want)
		}
	}
	count := read(t, `{"dialect":"messages","request":{},"rolltap":{"path":"/v1/messages/count_tokens"}}`)
	if count.Own.Side != SideCount {
		t.Errorf("a token count is %q", count.Own.Side)
	}
}

func TestOwn(t *testing.T) {
	c := read(t, `{"dialect":"messages","status_code":200,"latency_ttft_ms":12.5,"response":{"usage":{"input_tokens":3,"output_tokens":2}},"rolltap":{"outcome":"client_gone","finish_reason":"tool_calls","stream":true,`+
		`"losses":[{"path":"a","reason":"policy"}],"truncated":["request"],"usage":{"prompt_tokens":30,"completion_tokens":2,"cached_tokens":7,"reasoning_tokens":null},`+
		`"client":{"session":"s","agent":"a","parent_agent":"p"},"upstream":{"dialect":"chat"}}}`)
	const want = `{"outcome":"client_gone","finish_reason":"tool_calls","stream":true,"side":null,"losses":[{"path":"a","reason":"policy"}],"truncated":["request"],"upstream_dialect":"chat",` +
		`"usage":{"prompt_tokens":30,"completion_tokens":2,"cached_tokens":7,"reasoning_tokens":null},"session":"s","agent":"a","parent_agent":"p"}`
	if got := string(c.Own.appendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if ms, ok := c.FirstToken(); !ok || ms != 12.5 || !c.SubAgent() {
		t.Errorf("first token %v %t, sub-agent %t", ms, ok, c.SubAgent())
	}
	var a Aggregates
	a.Add(&c)
	failed := read(t, `{"dialect":"chat","status_code":502,"latency_ttft_ms":4,"error_category":"upstream_error","request":{"stream":true}}`)
	a.Add(&failed)
	if a.Errors() != 2 || a.FirstToken.Count() != 1 || a.ByLoss["policy"] != 1 || a.Agents["a"] != 1 || a.Sessions["s"] != 1 || a.ByOutcome["upstream_error"] != 1 {
		t.Errorf("%+v", a)
	}
	if out := a.AppendOwn(nil); !jsonx.Valid(out) {
		t.Errorf("invalid: %s", out)
	}
	var sum Aggregates
	sum.Merge(&a)
	sum.Merge(&a)
	if sum.Calls != 4 || sum.In.Known() != 6 || sum.FirstToken.Count() != 2 || sum.Sessions != nil {
		t.Errorf("merged: %+v", sum)
	}
}

// TestSketch: every quantile is within 1 % of the exact one.
func TestSketch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Sketch
	var all []float64
	for range 20000 {
		v := math.Exp(rnd.NormFloat64()*2 + 4)
		all = append(all, v)
		s.Add(v)
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		exact := all[int(math.Ceil(q*float64(len(all))))-1]
		got, ok := s.Quantile(q)
		if !ok || math.Abs(got-exact) > exact*0.0101 {
			t.Errorf("q %v: %v, exact %v", q, got, exact)
		}
	}
	for _, v := range []float64{math.NaN(), -1, 0, math.Inf(1), 1e300} {
		s.Add(v) // no panic
	}
}

func TestWriteWith(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{`{}`, `{"k":1}`},
		{`{"a":1}`, `{"a":1,"k":1}`},
		{`{"a":1, "k" : {"x":[1]} ,"b":2}`, `{"a":1, "k" : 1 ,"b":2}`},
		{`{"k":0,"k":2}`, `{"k":0,"k":1}`},
		{` { } `, ` { "k":1} `},
	} {
		row := append(make([]byte, 0, 100), c.row...)
		var got strings.Builder
		err := WriteWith(&got, row, "k", func(w io.Writer) error {
			_, err := w.Write([]byte("1"))
			return err
		})
		if err != nil || got.String() != c.want {
			t.Errorf("%s: %s, %v, want %s", c.row, got.String(), err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"0-0", "0-1", "0-6"} {
		_, calls := attach(&testing.T{}, gymStore, name)
		for _, c := range calls {
			f.Add([]byte(c))
		}
	}
	f.Add([]byte(`{"dialect":"messages","request":{"messages":[{"role":"user","content":"\ud800"}]},"response":{"content":[{"type":"tool_use","input":{}}]},"rolltap":{"losses":[1]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if !jsonx.Valid(line) || jsonx.KindOf(line) != jsonx.KindObject {
			return
		}
		var r Reader
		c, err := r.Read(line, 0)
		if err != nil {
			return
		}
		if out := c.AppendJSON(nil, Form{Payloads: true, Own: true}); !jsonx.Valid(out) {
			t.Fatalf("%s\nbecame invalid: %s", line, out)
		}
		var a Aggregates
		a.Add(&c)
		if !jsonx.Valid(a.AppendMetrics(nil)) || !jsonx.Valid(a.AppendOwn(nil)) {
			t.Fatalf("%s: invalid sums", line)
		}
	})
}
