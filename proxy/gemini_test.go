package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"rolltap/capture"
	"rolltap/internal/demomodel"
)

// jsonOf reads an answer.
func jsonOf(t *testing.T, body string) (r record) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return r
}

const geminiPath = "/ng-rollout/r/v1beta/models/" + demomodel.DefaultModel

// A client of Google's API in front of the demo model: text and reasoning, whole and as a stream, and a record of each.
func TestGemini(t *testing.T) {
	r := start(t, demo(t), chatOnly)
	const ask = `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"Think: what is the capital of France?"}]}],
		"generationConfig":{"maxOutputTokens":200,"thinkingConfig":{"includeThoughts":true}}}`
	res, got := r.post(geminiPath+":generateContent", ask)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		t.Fatalf("%s: %s", res.Status, got)
	}
	whole := jsonOf(t, got)
	whole.expect(t, "modelVersion", demomodel.DefaultModel, "candidates.0.finishReason", "STOP", "candidates.0.content.role", "model", "candidates.0.content.parts.0.thought", true)
	if text, _ := whole.at("candidates.0.content.parts.1.text").(string); !strings.Contains(text, "Paris") {
		t.Errorf("the answer is %s", got)
	}
	rec := r.record("r")
	rec.expect(t, "dialect", "gemini", "rolltap.path", "/v1beta/models/"+demomodel.DefaultModel+":generateContent", "rolltap.upstream.dialect", "chat", "rolltap.stream", false,
		"response.candidates.0.finishReason", "STOP", "rolltap.upstream.request.model", demomodel.DefaultModel, "rolltap.finish_reason", "stop", "rolltap.outcome", "ok")

	res, got = r.post(geminiPath+":streamGenerateContent?alt=sse&key=secret", ask)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || strings.Count(got, "data: ") < 5 {
		t.Fatalf("%s: %s", res.Status, got)
	}
	rec = r.records("r")[1]
	rec.expect(t, "rolltap.stream", true, "rolltap.query", "alt=sse&key=***", "response.candidates.0.finishReason", "STOP",
		"response.candidates.0.content.parts.0.text", whole.at("candidates.0.content.parts.0.text"),
		"response.candidates.0.content.parts.1.text", whole.at("candidates.0.content.parts.1.text"), "response.usageMetadata.totalTokenCount", whole.at("usageMetadata.totalTokenCount"))
	if n := r.counted(`rolltap_requests_total{dialect="gemini",outcome="ok",upstream_dialect="chat"}`); n != 2 {
		t.Errorf("%v calls are counted", n)
	}
}

// Thoughts that were not asked for are not shown, and come back to the model all the same: in the signature of the part behind them.
func TestGemini_hiddenThoughts(t *testing.T) {
	r := start(t, demo(t), chatOnly)
	_, got := r.post(geminiPath+":streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Think: what is the capital of France?"}]}]}`)
	if strings.Contains(got, `"thought":`) || strings.Count(got, `"thoughtSignature":"cm9sbHRhcDFj`) != 1 {
		t.Fatalf("the client sees %s", got)
	}
	said := r.record("r").at("response.candidates.0.content")
	thought, _ := r.record("r").at("rolltap.upstream.response.choices.0.message.reasoning").(string)
	ask := talkers()[2].body(t, []any{object{"parts": []any{object{"text": "Think: what is the capital of France?"}}}, said, object{"parts": []any{object{"text": "hi"}}}}, nil)
	if res, got := r.post(geminiPath+":generateContent", ask); res.StatusCode != 200 {
		t.Fatal(got)
	}
	if back := r.records("r")[1].at("rolltap.upstream.request.messages.2.reasoning"); thought == "" || back != thought {
		t.Errorf("the model gets back %q of %q", back, thought)
	}
}

// What rolltap refuses and what the upstream fails with has Google's shape.
func TestGemini_errors(t *testing.T) {
	for _, c := range []struct {
		name, method, body string
		status             int
		code, word, says   string
	}{
		{"no JSON", ":generateContent", `{`, 400, "invalid_request", "INVALID_ARGUMENT", "JSON"},
		{"no contents", ":generateContent", `{}`, 400, "invalid_request", "INVALID_ARGUMENT", "contents"},
		{"several candidates", ":generateContent", `{"contents":[{"parts":[{"text":"a"}]}],"generation_config":{"candidate_count":2}}`, 400, "unsupported_parameter", "INVALID_ARGUMENT", "generationConfig.candidateCount"},
		{"what Google keeps", ":generateContent", `{"contents":[{"parts":[{"text":"a"}]}],"cachedContent":"cachedContents/x"}`, 400, "unsupported_parameter", "INVALID_ARGUMENT", "cachedContent"},
		{"a stream as JSON", ":streamGenerateContent", `{"contents":[{"parts":[{"text":"a"}]}]}`, 400, "not_supported", "INVALID_ARGUMENT", "alt"},
		{"the upstream is busy", ":generateContent", `{"contents":[{"parts":[{"text":"[demo-fault: status=429]"}]}]}`, 429, "", "RESOURCE_EXHAUSTED", ""},
		{"the upstream is busy before a stream", ":streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"[demo-fault: status=503]"}]}]}`, 503, "", "UNAVAILABLE", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, demo(t), chatOnly)
			res, got := r.post(geminiPath+c.method, c.body)
			if res.StatusCode != c.status || res.Header.Get("X-Rolltap-Error") != c.code {
				t.Fatalf("%s, %v: %s", res.Status, res.Header, got)
			}
			said := jsonOf(t, got)
			said.expect(t, "error.code", c.status, "error.status", c.word)
			if message, _ := said.at("error.message").(string); !strings.Contains(message, c.says) {
				t.Errorf("says %s", got)
			}
			r.record("r").expect(t, "dialect", "gemini", "status_code", c.status)
		})
	}
}

func TestGemini_countTokens(t *testing.T) {
	r := start(t, demo(t), chatOnly)
	for _, body := range []string{
		`{"contents":[{"parts":[{"text":"hi"}]}]}`,
		`{"generateContentRequest":{"model":"models/` + demomodel.DefaultModel + `","contents":[{"parts":[{"text":"hi"}]}]}}`,
	} {
		res, got := r.post(geminiPath+":countTokens", body)
		if n, _ := jsonOf(t, got)["totalTokens"].(float64); res.StatusCode != http.StatusOK || n < 1 {
			t.Errorf("%s: %s", res.Status, got)
		}
	}
	if len(r.stored()) != 0 {
		t.Error("a count left a record")
	}
}

// The credential reaches the upstream where it looks for one, and nothing else that is for Google does; a token of this proxy goes nowhere.
func TestGemini_credentials(t *testing.T) {
	const body = `{"contents":[{"parts":[{"text":"hi"}]}]}`
	for _, c := range []struct {
		name, query string
		header      []string
		change      func(*Config)
		want        string
	}{
		{"in the header", "", []string{"X-Goog-Api-Key", "client-key", "X-Goog-Api-Client", "x"}, func(*Config) {}, "Bearer client-key"},
		{"in the query", "?key=client-key", nil, func(*Config) {}, "Bearer client-key"},
		{"replaced", "?key=client-key", []string{"X-Goog-Api-Key", "client-key"}, func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "upstream-key\n") }, "Bearer upstream-key"},
		{"a token of ours", "", []string{"X-Goog-Api-Key", "our-token"}, func(c *Config) { c.AuthTokenFile = tokenFileOf(t, "our-token\n") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := newUpstream(t, answerAll)
			r := start(t, up.url(), chatOnly, c.change)
			r.post(geminiPath+":generateContent"+c.query, body, c.header...)
			k := up.next()
			authorization := ""
			for line := range strings.Lines(k.Head) {
				if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.EqualFold(name, "authorization") {
					authorization = value
				}
			}
			if k.Target != "/v1/chat/completions" || authorization != c.want || strings.Contains(strings.ToLower(k.Head), "x-goog") || strings.Contains(k.Head, "our-token") {
				t.Errorf("the upstream got %q", k.Head)
			}
		})
	}
}

// The model in the path is renamed as others are, and the client sees its own name.
func TestGemini_modelMap(t *testing.T) {
	r := start(t, demo(t), chatOnly, func(c *Config) { c.ModelMap = ModelMap{"org/gemini-3:pro": demomodel.DefaultModel} })
	res, got := r.post("/ng-rollout/r/v1/models/org/gemini-3:pro:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`)
	if res.StatusCode != 200 {
		t.Fatal(got)
	}
	jsonOf(t, got).expect(t, "modelVersion", "org/gemini-3:pro")
	r.record("r").expect(t, "rolltap.upstream.request.model", demomodel.DefaultModel, "rolltap.upstream.model", demomodel.DefaultModel)
	if _, err := capture.Verify(r.cfg.Store, func(f capture.Finding) { t.Errorf("%+v", f) }); err != nil {
		t.Error(err)
	}
}
