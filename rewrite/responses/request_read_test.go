package responses

import (
	"errors"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

func TestReadCallReadsItems(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"instructions and a plain input", `{"instructions":"I","input":"hey"}`, "system! [text I]\nuser! [text hey]"},
		{"empty instructions say nothing", `{"instructions":"","input":"h"}`, "user! [text h]"},
		{"every role, typed and not", `{"input":[{"role":"system","content":"a"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"b"},{"type":"text","text":"c"}]},{"role":"user","content":"u"}]}`,
			"system! [text a]\ndeveloper [text b] [text c]\nuser! [text u]"},
		{"texts keep their escapes", `{"input":[{"role":"user","content":"\u00e9\ud800\/"}]}`, `user! [text \u00e9\ud800\/]`},
		{"what the model said is one message, in order", `{"input":[{"role":"user","content":"u"},{"type":"reasoning","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}],"content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":"enc"},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\": 1}"},{"role":"assistant","content":[{"type":"output_text","text":"after"}]},{"type":"custom_tool_call","call_id":"d","name":"g","input":"x\ny"},` +
			`{"type":"function_call_output","call_id":"c","output":"1"},{"type":"custom_tool_call_output","call_id":"d","output":"2"},{"role":"assistant","content":"end"}]}`,
			"user! [text u]\n" + `assistant [reasoning "raw" summary "A\\n\\nB" seal "enc" by "responses"] [call c /f {\"a\": 1}] [text after] [custom call d /g x\ny]` +
				"\ntool [result! c [text 1]]\ntool [custom result! d [text 2]]\nassistant [text end]"},
		{"reasoning without anything else", `{"input":[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":null}]}`, `assistant [reasoning "" summary "" seal "" by ""]`},
		{"a refusal", `{"input":[{"type":"message","role":"assistant","id":"m","content":[{"type":"refusal","refusal":"no"}]}]}`, "assistant [refusal no]"},
		{"annotations, logprobs, phase, status and members that nobody knows", `{"input":[{"type":"message","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"t","annotations":[{"type":"file_path"}],"logprobs":[1],"x":1},{"type":"output_text","text":"u"}]},` +
			`{"role":"user","content":"u","status":"incomplete","meta":{"k":1}}]}`,
			`assistant [text t cite {"type":"file_path"} +x=1 +phase="commentary"] [text u]` + "\n" + `user! [text u] +status="incomplete" +meta={"k":1}`},
		{"a call in a namespace, without arguments", `{"input":[{"type":"function_call","id":"fc","call_id":"c","namespace":"n","name":"f","caller":{"type":"direct"}}]}`,
			`assistant [call c n/f  +caller={"type":"direct"}]`},
		{"an output of parts", `{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}`,
			"tool [result c [text a] [image url=data:image/png;base64,AA==]]"},
		{"media", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://i","detail":"high"},{"type":"input_image","image_url":{"url":"http://j","detail":"low"}},{"type":"input_image","file_id":"f1"},` +
			`{"type":"input_file","file_data":"data:application/pdf;base64,AA","filename":"a.pdf"},{"type":"input_file","file_url":"http://f"},{"type":"input_file","file_id":"f2"},{"type":"input_file","file_data":"AA"},` +
			`{"type":"input_audio","input_audio":{"data":"BB","format":"wav"}},{"type":"input_video","video_url":"http://v"},{"type":"video_url","video_url":{"url":"http://w"}},{"type":"weather","x":1}]}]}`,
			"user [image url=http://i detail=high] [image url=http://j detail=low] [image file_id=f1] [file url=data:application/pdf;base64,AA title=a.pdf] [file url=http://f] [file file_id=f2] [file data=AA]" +
				` [audio data=BB format=wav] [video url=http://v] [video url=http://w] [unknown {"type":"weather","x":1}]`},
		{"Chat's tool role and tool_calls", `{"input":[{"role":"assistant","content":"hey","reasoning_content":"r","tool_calls":[{"id":"c","type":"function","index":0,"function":{"name":"f","arguments":"{}"}},{"id":"d","type":"custom","custom":{"name":"g","input":"x"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"ok"},{"role":"tool","tool_call_id":"d","content":null}]}`,
			`assistant [reasoning "r" summary "" seal "" by ""] [text hey] [call c /f {}] [custom call d /g x]` + "\ntool [result! c [text ok]]\ntool [result! d [text ]]"},
		{"items without a type", `{"input":[{"name":"f","arguments":"{}","call_id":"c"},{"call_id":"c","output":"o"},{"id":"rs","summary":[]},{"id":"msg_1"}]}`,
			"assistant [call c /f {}]\ntool [result! c [text o]]\n" + `assistant [reasoning "" summary "" seal "" by ""] [reference msg_1]`},
		{"hosted calls are the model's, their outputs the client's", `{"input":[{"type":"web_search_call","id":"w"},{"type":"local_shell_call","call_id":"l"},{"type":"local_shell_call_output","id":"l"}]}`,
			`assistant [hosted {"type":"web_search_call","id":"w"}] [hosted {"type":"local_shell_call","call_id":"l"}]` + "\n" + `user [hosted {"type":"local_shell_call_output","id":"l"}]`},
		{"results follow their calls, a hosted output comes behind", `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"tool_search_call","call_id":"t"},{"type":"tool_search_output","call_id":"t","tools":[]},{"type":"function_call_output","call_id":"c","output":"o"}]}`,
			`assistant [call c /f {}] [hosted {"type":"tool_search_call","call_id":"t"}]` + "\ntool [result! c [text o]]\n" + `user [hosted {"type":"tool_search_output","call_id":"t","tools":[]}]`},
		{"an item of an unknown type", `{"input":[{"type":"ghost_snapshot","x":1},{"role":"assistant","content":"a"},{"type":"agent_message","x":2},{"type":"compaction","encrypted_content":"e"},{"type":"compaction_trigger"}]}`,
			`user [unknown {"type":"ghost_snapshot","x":1}]` + "\n" + `assistant [text a] [unknown {"type":"agent_message","x":2}] [unknown {"type":"compaction","encrypted_content":"e"}]` + "\n" + `user [unknown {"type":"compaction_trigger"}]`},
		{"additional tools leave nothing", `{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f"}]},{"role":"user","content":"u"}]}`, "user! [text u]"},
		{"an assistant without content", `{"input":[{"role":"assistant","content":[]},{"role":"user","content":"u"}]}`, "assistant\nuser! [text u]"},
		{"escaped names and words", `{"input":[{"\u0074ype":"m\u0065ssage","role":"us\u0065r","cont\u0065nt":"u"}]}`, "user! [text u]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, losses := readCall(t, c.body)
			if got := told(r.Messages); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if len(losses) > 0 {
				t.Errorf("losses: %v", losses)
			}
		})
	}
}

func TestReadCallTellsPathsAndIDs(t *testing.T) {
	r, _ := readCall(t, `{"instructions":"i","input":[{"type":"message","id":"m1","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},`+
		`{"type":"reasoning","id":"r1","summary":[]},{"type":"message","id":"m2","role":"assistant","content":"x"},{"type":"function_call","id":"f1","call_id":"c","name":"n","arguments":""}]}`)
	var got []string
	for _, m := range r.Messages {
		got = append(got, m.Path+":")
		for _, p := range m.Parts {
			got = append(got, p.Path+"="+string(p.ItemID))
		}
	}
	const want = "instructions: instructions= input[0]: input[0].content[0]=m1 input[0].content[1]=m1 input[1]: input[1]=r1 input[2].content=m2 input[3]=f1"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestReadCallReadsMembers(t *testing.T) {
	r, losses := readCall(t, `{"model":"m","input":"h","stream":true,"max_output_tokens":100,"temperature":0.50,"top_p":1e0,"top_logprobs":3,"user":"u","metadata":{"a":"b"},"store":true,
		"service_tier":"flex","prompt_cache_key":"k","prompt_cache_retention":"24h","safety_identifier":"s","moderation":{"x":1},"text":{"format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object"},"strict":true},"verbosity":"low","x":1},
		"reasoning":{"effort":"xhigh","summary":"auto","context":"all_turns"},"include":["reasoning.encrypted_content","message.output_text.logprobs","web_search_call.results"],"context_management":[{"type":"compaction"}],"new":null,"newer":[2]}`)
	if len(losses) > 0 {
		t.Errorf("losses: %v", losses)
	}
	if string(r.Model) != "m" || !r.Stream || !r.Show.Encrypted || !r.Show.Logprobs || r.From != canon.Responses {
		t.Errorf("got %+v", r)
	}
	for p, want := range map[canon.Param]string{
		canon.ParamMaxTokens: "100", canon.ParamTemperature: "0.50", canon.ParamTopP: "1e0", canon.ParamTopLogprobs: "3", canon.ParamUser: `"u"`,
		canon.ParamMetadata: `{"a":"b"}`, canon.ParamStore: "true", canon.ParamServiceTier: `"flex"`, canon.ParamPromptCacheKey: `"k"`,
		canon.ParamPromptCacheRetention: `"24h"`, canon.ParamSafetyIdentifier: `"s"`, canon.ParamModeration: `{"x":1}`, canon.ParamVerbosity: `"low"`,
	} {
		if got := string(r.Params[p]); got != want {
			t.Errorf("parameter %d: got %s, want %s", p, got, want)
		}
	}
	f := r.Format
	if f.Kind != canon.FormatSchema || string(f.Name) != "n" || string(f.Description) != "d" || string(f.Schema) != `{"type":"object"}` || string(f.Strict) != "true" || f.Path != "text.format" {
		t.Errorf("format %+v", f)
	}
	if th := r.Thinking; string(th.Effort) != "xhigh" || string(th.Summary) != "auto" || th.Path != "reasoning" {
		t.Errorf("thinking %+v", th)
	}
	if got, want := toldExtra(r.Extra), ` +text.x=1 +reasoning.context="all_turns" +context_management=[{"type":"compaction"}] +newer=[2]`; got != want {
		t.Errorf("extra: got %s, want %s", got, want)
	}
}

func TestReadCallIgnoresWhatChangesNothing(t *testing.T) {
	r, losses := readCall(t, `{"input":[],"include":[],"truncation":"disabled","background":false,"previous_response_id":null,"conversation":null,"prompt":null,"tools":[],"tool_choice":"auto",
		"stream":null,"stream_options":{"include_obfuscation":false},"store":false,"instructions":null,"temperature":null,"text":{"format":{"type":"text"}},"reasoning":{"effort":null},"max_tool_calls":null}`)
	if len(losses) > 0 || r.Extra != nil || r.Stream || r.Messages != nil || r.Format.Kind != 0 || r.Thinking.Effort != nil || r.Params[canon.ParamTemperature] != nil {
		t.Errorf("losses %v, request %+v", losses, r)
	}
}

func TestReadCallTellsLosses(t *testing.T) {
	_, losses := readCall(t, `{"input":[{"type":"additional_tools","id":"a","role":"developer","y":1,"tools":[]}],"truncation":"auto","max_tool_calls":3,"client_metadata":{"a":"b"},"include":["reasoning.encrypted_content","new.thing"],
		"text":{"format":{"type":"json_object","z":1}},"tools":[{"type":"namespace","name":"n","description":"d","color":1,"tools":[7,{"type":"function"},{"type":"web_search","name":"w"},{"name":"f"}]},{"type":"namespace","name":"n","description":"d","tools":[]}],
		"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"s"}]}}`)
	const want = `truncation no_equivalent
client_metadata no_equivalent
max_tool_calls no_equivalent
text.format.z unknown
include.new.thing unknown
tools[0].tools[0] unknown
tools[0].tools[1] unknown
tools[0].tools[2].web_search unknown
tools[1].description unknown
input[0].y unknown
tool_choice.tools[0].server_label unknown`
	if got := toldLosses(losses); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadCallNamesTheFieldAtFault(t *testing.T) {
	for _, c := range []struct{ body, param, code string }{
		{`{}`, "input", canon.CodeInvalid},
		{`{"input":7}`, "input", canon.CodeInvalid},
		{`{"input":["secret"]}`, "input[0]", canon.CodeInvalid},
		{`{"input":[{"x":1}]}`, "input[0].type", canon.CodeInvalid},
		{`{"input":[{"type":7}]}`, "input[0].type", canon.CodeInvalid},
		{`{"input":[{"type":"message"}]}`, "input[0].role", canon.CodeInvalid},
		{`{"input":[{"role":"secret","content":"c"}]}`, "input[0].role", canon.CodeInvalid},
		{`{"input":[{"role":"user"}]}`, "input[0].content", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":{"text":"secret"}}]}`, "input[0].content", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":["secret"]}]}`, "input[0].content[0]", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_text"}]}]}`, "input[0].content[0].text", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"x":"secret"}]}]}`, "input[0].content[0].type", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, "input[0].content[0].image_url", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":""}]}]}`, "input[0].content[0].image_url", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":{"url":7}}]}]}`, "input[0].content[0].image_url.url", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_file","filename":"secret"}]}]}`, "input[0].content[0].file_data", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "input[0].content[0].input_audio", canon.CodeInvalid},
		{`{"input":[{"role":"user","content":[{"type":"input_video"}]}]}`, "input[0].content[0].video_url", canon.CodeInvalid},
		{`{"input":"h","stream":"true"}`, "stream", canon.CodeInvalid},
		{`{"input":"h","stream":1}`, "stream", canon.CodeInvalid},
		{`{"input":"h","model":7}`, "model", canon.CodeInvalid},
		{`{"input":"h","max_output_tokens":"secret"}`, "max_output_tokens", canon.CodeInvalid},
		{`{"input":"h","metadata":"secret"}`, "metadata", canon.CodeInvalid},
		{`{"input":"h","instructions":["secret"]}`, "instructions", canon.CodeInvalid},
		{`{"input":[{"type":"function_call","name":"f","arguments":"{}"}]}`, "input[0].call_id", canon.CodeInvalid},
		{`{"input":[{"type":"function_call","call_id":"c","arguments":"{}"}]}`, "input[0].name", canon.CodeInvalid},
		{`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{}}]}`, "input[0].arguments", canon.CodeInvalid},
		{`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":{}}]}`, "input[0].input", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function","name":"f"}],"input":[{"type":"function_call_output","output":"o"}]}`, "input[0].call_id", canon.CodeInvalid},
		{`{"input":[{"type":"function_call_output","call_id":"c","output":{"secret":1}}]}`, "input[0].output", canon.CodeInvalid},
		{`{"input":[{"type":"reasoning","summary":"secret"}]}`, "input[0].summary", canon.CodeInvalid},
		{`{"input":[{"type":"reasoning","summary":[{"type":"summary_text"}]}]}`, "input[0].summary[0].text", canon.CodeInvalid},
		{`{"input":[{"type":"item_reference"}]}`, "input[0].id", canon.CodeInvalid},
		{`{"input":[{"role":"tool","content":"c"}]}`, "input[0].tool_call_id", canon.CodeInvalid},
		{`{"input":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}`, "input[0].tool_calls[0].function.name", canon.CodeInvalid},
		{`{"input":"h","tools":{}}`, "tools", canon.CodeInvalid},
		{`{"input":"h","tools":["secret"]}`, "tools[0]", canon.CodeInvalid},
		{`{"input":"h","tools":[{}]}`, "tools[0].type", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function"}]}`, "tools[0].name", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function","name":"f","parameters":"secret"}]}`, "tools[0].parameters", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"namespace","name":"n","tools":[{"name":"f","strict":1}]}]}`, "tools[0].tools[0].strict", canon.CodeInvalid},
		{`{"input":[{"type":"additional_tools","tools":[{"type":"custom","name":"f","format":"secret"}]}]}`, "input[0].tools[0].format", canon.CodeInvalid},
		{`{"input":"h","tool_choice":"secret"}`, "tool_choice", canon.CodeInvalid},
		{`{"input":"h","tool_choice":"required"}`, "tool_choice", canon.CodeInvalid},
		{`{"input":"h","tools":[],"tool_choice":{"type":"function","name":"f"}}`, "tool_choice", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function","name":"g"}],"tool_choice":{"type":"function","name":"f"}}`, "tool_choice", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function","name":"g"}],"tool_choice":{"type":"function"}}`, "tool_choice.name", canon.CodeInvalid},
		{`{"input":"h","tools":[{"type":"function","name":"g"}],"tool_choice":{"type":"allowed_tools","mode":"none"}}`, "tool_choice.mode", canon.CodeInvalid},
		{`{"input":"h","text":{"format":{"type":"secret"}}}`, "text.format.type", canon.CodeUnsupported},
		{`{"input":"h","text":{"format":{"type":"json_schema","name":"n"}}}`, "text.format.schema", canon.CodeInvalid},
		{`{"input":"h","text":"secret"}`, "text", canon.CodeInvalid},
		{`{"input":"h","reasoning":"high"}`, "reasoning", canon.CodeInvalid},
		{`{"input":"h","reasoning":{"effort":1}}`, "reasoning.effort", canon.CodeInvalid},
		{`{"input":"h","include":"secret"}`, "include", canon.CodeInvalid},
		{`{"input":"h","include":[1]}`, "include[0]", canon.CodeInvalid},
		{`{"input":"h","previous_response_id":"secret"}`, "previous_response_id", canon.CodeUnsupported},
		{`{"input":"h","conversation":{"id":"secret"}}`, "conversation", canon.CodeUnsupported},
		{`{"input":"h","prompt":{"id":"secret"}}`, "prompt", canon.CodeUnsupported},
		{`{"input":"h","background":true}`, "background", canon.CodeUnsupported},
	} {
		_, err := responses{}.ReadCall([]byte(c.body), callOptions(nil))
		var p *canon.Problem
		if !errors.As(err, &p) || p.Param != c.param || p.Code != c.code || p.Status != 400 {
			t.Errorf("%s: got %+v, want %s of %s", c.body, p, c.code, c.param)
			continue
		}
		if strings.Contains(p.Message, "secret") {
			t.Errorf("%s: the message repeats what was sent: %s", c.body, p.Message)
		}
	}
}

// What real clients send is read: nothing is refused, and losses are only what no other dialect can have.
func TestReadCallReadsRecordedRequests(t *testing.T) {
	for name, body := range recorded(t) {
		r, losses := readCall(t, string(body))
		if len(r.Messages) == 0 {
			t.Errorf("%s: no messages", name)
		}
		for _, l := range losses {
			if l.Path != "client_metadata" && l.Path != "truncation" {
				t.Errorf("%s: lost %+v", name, l)
			}
		}
	}
}
