package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// frames are events of a stream, each with its data.
func frames(data ...string) []byte {
	return []byte("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

// A loss of an answer is told in the same words however the answer comes: where the decoder finds what nobody can say it is the place in the
// upstream's answer, and else the place in the client's, ending in the name of what was lost.
func TestLossesAreTheSameAsAStream(t *testing.T) {
	const messageStart, messageEnd = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"message_stop"}`
	for _, c := range []struct {
		name   string
		up     canon.Dialect
		whole  string
		stream []byte
		losses map[canon.Dialect]string // sorted; of every client but those of the upstream's dialect
	}{
		{"a sound", canon.Chat, `{"id":"i","choices":[{"index":0,"message":{"content":"a","audio":{"id":"x"}},"finish_reason":"stop"}]}`,
			frames(`{"id":"i","choices":[{"index":0,"delta":{"content":"a","audio":{"id":"x"}}}]}`, `{"id":"i","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
			map[canon.Dialect]string{canon.Messages: "choices[0].message.audio no_equivalent", canon.Responses: "choices[0].message.audio no_equivalent", canon.Gemini: "choices[0].message.audio no_equivalent"}},
		{"a strange member of a call", canon.Chat, `{"id":"i","choices":[{"index":0,"message":{"tool_calls":[{"id":"c","z":1,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
			frames(`{"id":"i","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","z":1,"function":{"name":"f","arguments":"{}"}}]}}]}`, `{"id":"i","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
			map[canon.Dialect]string{canon.Messages: "choices[0].message.tool_calls.z unknown", canon.Responses: "choices[0].message.tool_calls.z unknown", canon.Gemini: "choices[0].message.tool_calls.z unknown"}},
		{"a signature", canon.Messages, `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}],"stop_reason":"end_turn"}`,
			frames(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
				`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, messageEnd),
			map[canon.Dialect]string{canon.Chat: "choices[0].message.reasoning_content.signature foreign", canon.Responses: "", canon.Gemini: ""}},
		{"a block that nobody knows", canon.Messages, `{"id":"m","type":"message","role":"assistant","content":[{"type":"hologram","x":1}],"stop_reason":"end_turn"}`,
			frames(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"hologram","x":1}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, messageEnd),
			map[canon.Dialect]string{canon.Chat: "choices[0].message.hologram unknown", canon.Responses: "output[0].hologram unknown", canon.Gemini: "parts[0].hologram unknown"}},
		{"an encrypted content and an item that nobody knows", canon.Responses,
			`{"id":"r","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"},{"type":"hologram","id":"h"}]}`,
			frames(`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"type":"hologram","id":"h"}}`,
				`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`),
			map[canon.Dialect]string{canon.Chat: "choices[0].message.hologram unknown choices[0].message.reasoning_content.encrypted_content foreign", canon.Messages: "content[1].hologram unknown",
				canon.Gemini: "parts[1].hologram unknown"}},
	} {
		for client, want := range c.losses {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s to %s, stream %v", c.name, c.up, client, stream), func(t *testing.T) {
					tr := asking(t, client, c.up, stream)
					if stream {
						s := tr.NewStream(0)
						s.Push(c.stream)
						if !s.Ended() || s.Failed() != nil {
							t.Fatalf("ended %v, failed %v", s.Ended(), s.Failed())
						}
					} else if _, err := tr.Answer([]byte(c.whole)); err != nil {
						t.Fatal(err)
					}
					var all []string
					for _, l := range tr.Losses() {
						all = append(all, l.Path+" "+string(l.Reason))
					}
					slices.Sort(all)
					if got := strings.Join(all, " "); got != want {
						t.Errorf("\nlost %s\nwant %s", got, want)
					}
				})
			}
		}
	}
}

// A wish that the upstream's dialect has no word for is told as the client spelled it.
func TestLossOfLogprobs(t *testing.T) {
	for client, body := range map[canon.Dialect]string{
		canon.Responses: `{"model":"m","input":"x","include":["message.output_text.logprobs"]}`,
		canon.Chat:      `{"model":"m","messages":[{"role":"user","content":"x"}],"logprobs":true}`,
	} {
		tr := between(t, client, canon.Messages)
		if _, err := tr.Request([]byte(body)); err != nil {
			t.Fatal(err)
		}
		want := canon.Loss{Path: map[canon.Dialect]string{canon.Responses: "include.message.output_text.logprobs", canon.Chat: "logprobs"}[client], Reason: canon.NoEquivalent}
		if got := tr.Losses(); !slices.Equal(got, []canon.Loss{want}) {
			t.Errorf("%s: lost %v; want %v", client, got, want)
		}
	}
}

// The arguments of a bridged call that are not its one text are told where the call is in the client's answer.
func TestLossOfABridgedCall(t *testing.T) {
	const answer = `{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"exec","input":{"code":"1"}}],"stop_reason":"tool_use"}`
	for client, c := range map[canon.Dialect]struct{ body, path string }{
		canon.Chat: {`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"exec"}}]`,
			"choices[0].message.tool_calls[1].arguments"},
		canon.Responses: {`{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"custom","name":"exec"}]`, "output[1].arguments"},
	} {
		for _, stream := range []bool{false, true} {
			tr := between(t, client, canon.Messages)
			if _, err := tr.Request([]byte(c.body + fmt.Sprintf(`,"stream":%v}`, stream))); err != nil {
				t.Fatal(err)
			}
			var err error
			if stream {
				_, err = tr.NewStream(0).Whole([]byte(answer))
			} else {
				_, err = tr.Answer([]byte(answer))
			}
			if want := []canon.Loss{{Path: c.path, Reason: canon.NoEquivalent}}; err != nil || !slices.Equal(tr.Losses(), want) {
				t.Errorf("%s, stream %v: %v, lost %v; want %v", client, stream, err, tr.Losses(), want)
			}
		}
	}
}
