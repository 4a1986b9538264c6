package rewrite_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest/generate"
)

// A member that nobody knows, in any object of an answer, is told as lost, whether the answer comes whole or as a stream.
func TestAnyMemberOfAnAnswerIsTold(t *testing.T) {
	for _, up := range upstreams() {
		for _, client := range dialects(t) {
			t.Run(string(up)+" to "+string(client.Name()), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					tb := property{t, rt}
					said := generate.Said(rt, up)
					body := string(said.Unary)
					for _, at := range objects(body) {
						planted := body[:at] + `"x_newer":1,` + body[at:]
						tr := asking(tb, client.Name(), up, false)
						if _, err := tr.Answer([]byte(planted)); err != nil {
							rt.Fatalf("%v\n%s", err, planted)
						}
						told(rt, tr, planted)
						live := asking(tb, client.Name(), up, true)
						if _, err := live.NewStream(0).Whole([]byte(planted)); err != nil {
							rt.Fatalf("%v\n%s", err, planted)
						}
						told(rt, live, planted)
					}
					at := rapid.SampledFrom(objects(string(said.Stream))).Draw(rt, "object")
					planted := string(said.Stream[:at]) + `"x_newer":1,` + string(said.Stream[at:])
					live := asking(tb, client.Name(), up, true)
					stream := live.NewStream(0)
					stream.Push([]byte(planted))
					if stream.Finish(); stream.Failed() != nil {
						rt.Fatalf("%v\n%s", stream.Failed(), planted)
					}
					told(rt, live, planted)
				})
			})
		}
	}
}

// A call that is like others is told no losses: members that describe, that are zero, or that are for who runs the engine, are none.
func TestOrdinaryAnswersLoseNothingUnknown(t *testing.T) {
	lost := func(name string, client canon.Dialect, tr *rewrite.Translation) {
		for _, l := range tr.Losses() {
			if l.Reason == canon.NotKnown || strings.HasPrefix(l.Path, "usage") {
				t.Errorf("%s to %s: lost %v", name, client, l)
			}
		}
	}
	for _, x := range exchanges(t) {
		for _, client := range dialects(t) {
			if x.status != 200 {
				continue
			}
			tr := asking(t, client.Name(), x.dialect, x.stream)
			if x.stream {
				stream := tr.NewStream(0)
				stream.Push(x.response)
				stream.Finish()
			} else if _, err := tr.Answer(x.response); err != nil && !strings.Contains(x.name, "abort") {
				t.Errorf("%s to %s: %v", x.name, client.Name(), err)
			}
			lost(x.name, client.Name(), tr)
		}
	}
	for up, body := range map[canon.Dialect]string{ // as the official APIs and SGLang say it
		canon.Messages: `{"id":"i","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","stop_sequence":null,
			"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,
			"ephemeral_1h_input_tokens":0},"output_tokens":4,"output_tokens_details":{"thinking_tokens":2},"server_tool_use":{"web_search_requests":0},
			"service_tier":"standard","inference_geo":"not_available","speed":"standard"}}`,
		canon.Chat: `{"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,
			"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"service_tier":"default","system_fingerprint":"fp","usage":{"prompt_tokens":3,
			"completion_tokens":4,"total_tokens":7,"reasoning_tokens":2,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0,"text_tokens":3},
			"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}`,
		canon.Responses: `{"id":"i","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"m","output":[],
			"metrics":{"ttft":1},"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0,"input_tokens_per_turn":[3],"cached_tokens_per_turn":[0]},
			"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2,"tool_output_tokens":0,"output_tokens_per_turn":[4]},"total_tokens":7}}`,
	} {
		for _, client := range dialects(t) {
			tr := asking(t, client.Name(), up, false)
			if _, err := tr.Answer([]byte(body)); err != nil {
				t.Errorf("%s to %s: %v", up, client.Name(), err)
			}
			lost(string(up), client.Name(), tr)
		}
	}
}

func told(t *rapid.T, tr *rewrite.Translation, planted string) {
	t.Helper()
	for _, l := range tr.Losses() {
		if strings.HasSuffix(l.Path, "x_newer") && l.Reason == canon.NotKnown {
			return
		}
	}
	t.Fatalf("nothing is told of x_newer\n%s\n%v", planted, tr.Losses())
}

// objects are the places behind the braces of objects that have members, in bodies and in streams, but those of what a tool is called with and of
// what is lost whole.
func objects(body string) (places []int) {
	inside := 0   // how deep in one of those
	text := false // in a string
	for at := 0; at < len(body); at++ {
		switch c := body[at]; {
		case text && c == '\\':
			at++
		case c == '"':
			text = !text
		case text:
		case c == '{' && (inside > 0 || strings.HasSuffix(body[:at], `"input":`) || strings.HasPrefix(body[at:], `{"type":"redacted_thinking"`)):
			inside++
		case c == '{' && body[at+1] == '"':
			places = append(places, at+1)
		case c == '}' && inside > 0:
			inside--
		}
	}
	return places
}
