package derive

import "testing"

// The Gym reader knows no Gemini: its records are read here all the same.
func TestGemini(t *testing.T) {
	line := `{"model_call_id":"00000000000000000000000000000001","dialect":"gemini","model_ref":{"type":"responses_api_models","name":"p"},"started_at":1.0,"completed_at":1.5,"latency_ms":5.0,"status_code":200,` +
		`"request":{"contents":[{"parts":[{"text":"hi"}]}]},"response":{"candidates":[{"content":{"parts":[{"text":"T","thought":true},{"functionCall":{"id":"c","name":"f","args":{"a":1}}}]},"finishReason":"STOP"}],` +
		`"modelVersion":"m","responseId":"r","usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":12}}}`
	c, err := new(Reader).Read([]byte(line), 0)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tokens != (Tokens{In: 7, Out: 5, Reasoning: 2, Total: 12, CacheCreation: -1, Cached: -1}) || string(c.Model) != `"m"` || string(c.ResponseID) != `"r"` || c.ToolCalls() != 1 {
		t.Errorf("%+v", c)
	}
	if got := string(c.appendToolCalls(nil)); got != `[{"call_id":"c","name":"f","arguments":{"a":1}}]` {
		t.Errorf("calls %s", got)
	}
	if got := string(c.appendReasoning(nil)); got != `"T"` {
		t.Errorf("reasoning %s", got)
	}
	if c.Own.Finish != "stop" {
		t.Errorf("finish %q", c.Own.Finish)
	}
}
