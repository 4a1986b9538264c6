package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// upstreams are the dialects of model servers: a client of any dialect may have any of them behind it.
func upstreams() []canon.Dialect { return []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} }

// between is a translation with the settings as they are by default.
func between(tb testing.TB, client, upstream canon.Dialect) *rewrite.Translation {
	policy := rewrite.DefaultPolicy()
	return rewrite.NewTranslation(translator(tb, client), translator(tb, upstream), &policy, rewrite.Call{ID: "1", Target: dialect.Target{Model: "m"}})
}

// Calls that TestAnyCallReachesEveryUpstream has found, or would have: what was dropped without a word is a loss now. Each is one kind, at every
// upstream that it goes to.
func TestWhatStandsAsideIsKeptOrTold(t *testing.T) {
	const (
		chatHead      = `"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]`
		responsesHead = `"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"web_search"}]`
		messagesHead  = `"model":"m","max_tokens":9`
		geminiCalls   = `"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{},"z":1}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"},"z":1}}]}]`
	)
	for _, c := range []struct {
		name   string
		client canon.Dialect
		body   string
		losses string // sorted
	}{
		{"beside a named tool choice", canon.Chat, chatHead + `,"tool_choice":{"type":"function","function":{"name":"f","z":1},"z":1}`, "tool_choice.function.z tool_choice.z"},
		{"beside allowed tools", canon.Chat, chatHead + `,"tool_choice":{"type":"allowed_tools","z":1,"allowed_tools":{"mode":"auto","z":1,"tools":[{"type":"function","z":1,"function":{"name":"f","z":1}}]}}`,
			"tool_choice.allowed_tools.tools[0].function.z tool_choice.allowed_tools.tools[0].z tool_choice.allowed_tools.z tool_choice.z"},
		{"beside a response format", canon.Chat, chatHead + `,"response_format":{"type":"json_schema","z":1,"json_schema":{"schema":{},"z":1}}`,
			"response_format.json_schema.z response_format.z"},
		{"inside of a function", canon.Chat, `"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","z":1,"function":{"name":"f","z":1}}]`,
			"tools[0].function.z tools[0].z"},
		{"of a system message", canon.Chat, `"model":"m","messages":[{"role":"system","content":"s","z":1,"name":"n"},{"role":"user","content":"x"}]`, "messages[0].name messages[0].z"},
		{"beside a named tool choice", canon.Responses, responsesHead + `,"tool_choice":{"type":"function","name":"f","z":1}`, "tool_choice.z tools[1].web_search"},
		{"beside the choice of a hosted tool", canon.Responses, responsesHead + `,"tool_choice":{"type":"web_search","z":1}`, "tool_choice tool_choice.z tools[1].web_search"},
		{"beside allowed tools", canon.Responses, responsesHead + `,"tool_choice":{"type":"allowed_tools","mode":"auto","z":1,"tools":[{"type":"function","name":"f","z":1}]}`,
			"tool_choice.tools[0].z tool_choice.z"},
		{"of a developer message", canon.Responses, `"model":"m","input":[{"role":"developer","content":"d","z":1},{"role":"user","content":"x"}]`, "input[0].z"},
		{"in the parts of reasoning", canon.Responses, `"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t","z":1}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]`, "input[1].content[0].z"},
		{"in the parts of a summary", canon.Responses, `"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"t","z":1}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]`, "input[1].summary[0].z"},
		{"in a call of Chat's shape", canon.Responses, `"model":"m","input":[{"role":"user","content":"x"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","z":1,"function":{"name":"f","arguments":"{}","z":1}}]},
			{"role":"tool","tool_call_id":"c","content":"r"}]`, "input[1].tool_calls[0].function.z input[1].tool_calls[0].z"},
		{"in the texts of a search result", canon.Messages, messagesHead + `,"messages":[{"role":"user","content":[{"type":"search_result","source":"s","title":"t",
			"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"},"z":1}]}]}]`, "messages[0].content[0].content[0].cache_control messages[0].content[0].content[0].z"},
		{"of a message of which nothing is left", canon.Messages, messagesHead + `,"messages":[{"role":"user","content":"x"},{"role":"assistant","z":1,"content":[{"type":"redacted_thinking","data":"d"}]},
			{"role":"user","content":"y"}]`, "messages[1].content[0].redacted_thinking messages[1].z"},
		{"in the system instruction", canon.Gemini, `"systemInstruction":{"parts":[{"text":"s"}],"z":1},"contents":[{"parts":[{"text":"x"}]}]`, "systemInstruction.z"},
		{"in the tool config", canon.Gemini, `"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"z":1,"functionCallingConfig":{"mode":"AUTO","z":1}}`,
			"toolConfig.functionCallingConfig.z toolConfig.z"},
		{"in calls and responses", canon.Gemini, geminiCalls, "contents[1].parts[0].functionCall.z contents[2].parts[0].functionResponse.z"},
	} {
		for _, up := range upstreams() {
			if up == c.client {
				continue
			}
			t.Run(fmt.Sprintf("%s of %s to %s", c.name, c.client, up), func(t *testing.T) {
				tr := between(t, c.client, up)
				if _, err := tr.Request([]byte("{" + c.body + "}")); err != nil {
					t.Fatal(err)
				}
				var paths []string
				for _, l := range tr.Losses() {
					paths = append(paths, l.Path)
				}
				slices.Sort(paths)
				if got := strings.Join(paths, " "); got != c.losses {
					t.Errorf("\nlost %s\nwant %s", got, c.losses)
				}
			})
		}
	}
}

func TestAnEffortDoesNotSwitchOnWhatIsOff(t *testing.T) {
	for _, c := range []struct {
		client     canon.Dialect
		body, loss string
	}{
		{canon.Messages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"disabled"},"output_config":{"effort":"high"}}`, "output_config.effort"},
		{canon.Gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0,"thinkingLevel":"HIGH"}}}`, "generationConfig.thinkingConfig.thinkingLevel"},
	} {
		tr := between(t, c.client, canon.Responses)
		out, err := tr.Request([]byte(c.body))
		if err != nil || !strings.Contains(string(out), `"reasoning":{"effort":"none"}`) {
			t.Errorf("%s: %v, %s", c.client, err, out)
		}
		if want := []canon.Loss{{Path: c.loss, Reason: canon.NoEquivalent}}; !slices.Equal(tr.Losses(), want) {
			t.Errorf("%s: lost %v, want %v", c.client, tr.Losses(), want)
		}
	}
}

// What a Messages model has redacted comes back to it from clients of other dialects that keep seals, though none of them can show it.
func TestRedactedThinkingComesBackThroughOtherClients(t *testing.T) {
	const said = `{"id":"msg_9","type":"message","role":"assistant","model":"m","content":[{"type":"redacted_thinking","data":"Em+/=="},{"type":"tool_use","id":"t1","name":"f","input":{}}],` +
		`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":3}}`
	for _, c := range []struct {
		client canon.Dialect
		next   func(answer []byte) string
	}{
		{canon.Responses, func(answer []byte) string {
			items := jsonx.Get(answer, "output")
			return `{"model":"m","input":[{"role":"user","content":"x"},` + string(items[1:len(items)-1]) + `,{"type":"function_call_output","call_id":"t1","output":"r"}]}`
		}},
		{canon.Gemini, func(answer []byte) string {
			candidates := jsonx.Array(jsonx.Get(answer, "candidates"))
			candidates.Next()
			return `{"contents":[{"role":"user","parts":[{"text":"x"}]},` + string(jsonx.Get(candidates.Value(), "content")) +
				`,{"role":"user","parts":[{"functionResponse":{"id":"t1","name":"f","response":{"output":"r"}}}]}]}`
		}},
	} {
		tr := asking(t, c.client, canon.Messages, false)
		answer, err := tr.Answer([]byte(said))
		if err != nil || len(tr.Losses()) > 0 {
			t.Errorf("%s: %v, lost %v\n%s", c.client, err, tr.Losses(), answer)
			continue
		}
		back := between(t, c.client, canon.Messages)
		sent, err := back.Request([]byte(c.next(answer)))
		if want := `[{"type":"redacted_thinking","data":"Em+/=="},{"type":"tool_use","id":"t1","name":"f","input":{}}]`; err != nil || !strings.Contains(string(sent), want) {
			t.Errorf("%s: %v, lost %v\n%s", c.client, err, back.Losses(), sent)
		}
		chat := between(t, c.client, canon.Chat)
		if _, err := chat.Request([]byte(c.next(answer))); err != nil || len(chat.Losses()) != 1 || chat.Losses()[0].Reason != canon.Foreign {
			t.Errorf("%s: another model is told nothing of it, which is a loss: %v, %v", c.client, err, chat.Losses())
		}
	}
}

// A whole answer tells of unknown members as the stream of the same does; to a client that wants a stream of it, too.
func TestMembersOfAWholeAnswerAreTold(t *testing.T) {
	for _, c := range []struct {
		up           canon.Dialect
		body, losses string
	}{
		{canon.Messages, `{"id":"i","type":"message","role":"assistant","z":1,"content":[{"type":"text","text":"a","z":1},{"type":"tool_use","id":"t","name":"f","input":{},"z":1}],"stop_reason":"tool_use"}`,
			"content[0].z content[1].z z"},
		{canon.Responses, `{"id":"i","object":"response","status":"completed","z":1,"output":[{"type":"message","role":"assistant","z":1,"content":[{"type":"output_text","text":"a","z":1}]},
			{"type":"function_call","call_id":"t","name":"f","arguments":"{}","z":1},{"type":"message","role":"assistant","z":1,"content":[]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b","z":1}]}]}`,
			"output[0].content[0].z output[0].z output[1].z output[2].z output[3].summary[1].z z"},
		{canon.Chat, `{"id":"i","object":"chat.completion","z":1,"choices":[{"index":0,"finish_reason":"tool_calls","z":1,"message":{"role":"assistant","content":"a","z":1,"tool_calls":[
			{"id":"t","type":"function","z":1,"function":{"name":"f","arguments":"{}","z":1}}]}}]}`,
			"choices[0].message.tool_calls.function.z choices[0].message.tool_calls.z choices[0].message.z choices[0].z z"},
	} {
		for _, client := range dialects(t) {
			for _, stream := range []bool{false, true} {
				tr := asking(t, client.Name(), c.up, stream)
				var err error
				if stream {
					_, err = tr.NewStream(0).Whole([]byte(c.body))
				} else {
					_, err = tr.Answer([]byte(c.body))
				}
				var paths []string
				for _, l := range tr.Losses() {
					paths = append(paths, l.Path)
				}
				slices.Sort(paths)
				if got := strings.Join(paths, " "); err != nil || got != c.losses {
					t.Errorf("%s to %s, stream %v: %v\nlost %s\nwant %s", c.up, client.Name(), stream, err, got, c.losses)
				}
			}
		}
	}
}
