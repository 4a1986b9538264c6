package rewrite_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/dialecttest/generate"
)

// block is one of Messages, as far as these properties read it.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUse   string          `json:"tool_use_id,omitempty"`
	Data      string          `json:"data,omitempty"`
}

// turn is a message whose content is a list of blocks, or was a string.
type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

func readTurns(t *rapid.T, body []byte) []turn {
	var call struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &call); err != nil {
		t.Fatal(err)
	}
	var turns []turn
	for _, m := range call.Messages {
		one := turn{Role: m.Role}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			one.Content = []block{{Type: "text", Text: text}}
		} else if err := json.Unmarshal(m.Content, &one.Content); err != nil {
			t.Fatal(err)
		}
		turns = append(turns, one)
	}
	return turns
}

// What a Messages model said comes back to it whole from a Responses client that sends it again: each block in its place, ids, inputs, what was thought
// and its signature; and the client has seen why the model stopped (dialects.md 10.1 b).
func TestAnyAnswerComesBackThroughAResponsesClient(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := generate.Said(rt, canon.Messages)
		answer, err := asking(property{t, rt}, canon.Responses, canon.Messages, false).Answer(said.Unary)
		if err != nil {
			rt.Fatalf("%v\n%s", err, said.Unary)
		}
		sameStop(rt, translator(t, canon.Messages), translator(t, canon.Responses), said.Unary, answer)
		var heard struct {
			Output []json.RawMessage
		}
		var model turn
		if json.Unmarshal(answer, &heard) != nil || json.Unmarshal(said.Unary, &model) != nil {
			rt.Fatalf("%s", answer)
		}
		input := append([]json.RawMessage{[]byte(`{"role":"user","content":"x"}`)}, heard.Output...)
		want := turn{Role: "assistant"}
		for _, b := range model.Content {
			if b.Type == "tool_use" {
				input = append(input, fmt.Appendf(nil, `{"type":"function_call_output","call_id":"%s","output":"r"}`, b.ID))
			}
			want.Content = append(want.Content, b)
		}
		list, err := json.Marshal(append(input, []byte(`{"role":"user","content":"go on"}`)))
		if err != nil {
			rt.Fatal(err)
		}
		sent, err := between(t, canon.Responses, canon.Messages).Request(fmt.Appendf(nil, `{"model":"m","input":%s}`, list))
		if err != nil {
			rt.Fatalf("%v\n%s", err, list)
		}
		turns := readTurns(rt, sent)
		if len(turns) != 3 || turns[0].Role != "user" || turns[2].Role != "user" {
			rt.Fatalf("%+v", turns)
		}
		sameBlocks(rt, want, turns[1])
	})
}

func sameBlocks(t *rapid.T, want, got any) {
	t.Helper()
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.SameJSON(property{nil, t}, w, g, func(v any) any { return v })
}

// sameStop compares why an answer ended in two dialects. A stop sequence is an end where there is no word for it.
func sameStop(t *rapid.T, upstream, client dialecttest.Dialect, said, heard []byte) {
	t.Helper()
	policy := dialect.DefaultPolicy()
	o := dialect.Options{Policy: &policy, Losses: new(canon.Losses)}
	a, err := upstream.ReadAnswer(said, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := client.ReadAnswer(heard, o)
	if err != nil {
		t.Fatal(err)
	}
	want := a.Stop.Reason
	if want == canon.StopSequence {
		want = canon.StopEnd
	}
	if b.Stop.Reason != want || a.Called() != b.Called() {
		t.Fatalf("stopped by %d, the client sees %d\n%s\n%s", a.Stop.Reason, b.Stop.Reason, said, heard)
	}
}

// A conversation of a Messages client that goes to a Messages model in the words of Responses keeps who said what in which order, ids, inputs and what
// was thought. Signatures that another made do not go to a vendor who did not.
func TestAnyConversationGoesThroughResponses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body := generate.Call(rt, canon.Messages)
		through, err := between(t, canon.Messages, canon.Responses).Request(body)
		if err != nil {
			return // what is refused is another property
		}
		back, err := between(t, canon.Responses, canon.Messages).Request(through)
		if err != nil {
			rt.Fatalf("%v\n in %s\nout %s", err, body, through)
		}
		sameBlocks(rt, spoken(readTurns(rt, body)), spoken(readTurns(rt, back)))
	})
}

// spoken is what is compared of a conversation: all that the model said, and which results stand between. Of the results of one turn the order is kept,
// and they come first.
func spoken(turns []turn) (all []turn) {
	for _, from := range turns {
		one := turn{Role: from.Role}
		for _, b := range from.Content {
			switch {
			case b.Type == "tool_result":
				one.Content = append(one.Content, block{Type: b.Type, ToolUse: b.ToolUse})
			case from.Role == "assistant" && b.Type != "redacted_thinking":
				b.Signature = ""
				b.Name = b.Name[:min(len(b.Name), 40)] // longer ones are another name there
				one.Content = append(one.Content, b)
			}
		}
		if len(one.Content) == 0 {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Role == one.Role { // nothing that is compared stands between
			all[n-1].Content = append(all[n-1].Content, one.Content...)
		} else {
			all = append(all, one)
		}
	}
	return all
}
