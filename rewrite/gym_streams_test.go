package rewrite_test

import (
	"encoding/json"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// Gym makes its streams of whole answers and has no others, so what is compared is what they say.

func chatStream(t *testing.T, c gymCase) []string {
	var in struct {
		Completion   json.RawMessage
		IncludeUsage bool `json:"include_usage"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		t.Fatal(err)
	}
	asked := askedOfGym(canon.Chat, true)
	if in.IncludeUsage {
		asked = rewrite.SetMember(asked, "stream_options", []byte(`{"include_usage":true}`))
	}
	return compareStreams(t, c, canon.Chat, canon.Chat, asked, in.Completion)
}

func messagesStream(t *testing.T, c gymCase) []string {
	return compareStreams(t, c, canon.Messages, canon.Responses, askedOfGym(canon.Messages, true), c.Input)
}

// responsesStream has one case more: of a failure only the message is given.
func responsesStream(t *testing.T, c gymCase) []string {
	asked := []byte(`{"model":"m","input":"hi","include":["reasoning.encrypted_content"],"stream":true}`)
	if strings.HasSuffix(c.name, "/namespaced-call") {
		asked = rewrite.SetMember(asked, "tools", []byte(`[{"type":"namespace","name":"mcp__w","tools":[{"type":"function","name":"get_weather"}]}]`))
	}
	var message string
	if json.Unmarshal(c.Input, &message) != nil {
		return compareStreams(t, c, canon.Responses, canon.Responses, asked, c.Input)
	}
	tr := asGym(t, canon.Responses, canon.Responses)
	if _, err := tr.Request(asked); err != nil {
		t.Fatal(err)
	}
	stream := tr.NewStream(0)
	said := append([]byte(nil), stream.KeepAlive()...)
	said = append(said, stream.Fail(&canon.Problem{Status: 500, Message: message})...)
	return compare("", tidyAnswer(folded(t, canon.Responses, theirFrames(t, c.Output))), tidyAnswer(folded(t, canon.Responses, said)))
}

func theirFrames(t *testing.T, output json.RawMessage) []byte {
	t.Helper()
	var frames []string
	if err := json.Unmarshal(output, &frames); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Join(frames, ""))
}

func compareStreams(t *testing.T, c gymCase, client, upstream canon.Dialect, asked, answer []byte) []string {
	t.Helper()
	tr := asGym(t, client, upstream)
	if _, err := tr.Request(asked); err != nil {
		t.Fatal(err)
	}
	frames, err := tr.NewStream(0).Whole(answer)
	if raises(c.Output) || err != nil {
		return outcome(t, c.Output, frames, err, nil)
	}
	return compare("", tidyAnswer(folded(t, client, theirFrames(t, c.Output))), tidyAnswer(folded(t, client, frames)))
}

// folded is the answer that a stream says.
func folded(t *testing.T, d canon.Dialect, stream []byte) any {
	t.Helper()
	f := translator(t, d).NewFolder()
	for frame := range strings.SplitSeq(string(stream), "\n\n") {
		var name, data string
		for line := range strings.Lines(frame) {
			if rest, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(rest)
			} else if rest, ok := strings.CutPrefix(line, "data: "); ok {
				data = strings.TrimSpace(rest)
			}
		}
		if data != "" && data != "[DONE]" {
			f.Event([]byte(name), []byte(data))
		}
	}
	return anyJSON(t, f.AppendResponse(nil))
}
