package chat

import (
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func TestParametersOfOthersAreWritten(t *testing.T) {
	f := canon.Tool{Kind: canon.FunctionTool, Name: canon.Text("f"), Strict: canon.Raw("true"), Path: "tools[0]"}
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}}]`
	for _, c := range []struct {
		name   string
		from   canon.Dialect
		set    func(*canon.Request, *dialect.Policy)
		want   string // behind the messages
		losses string
	}{
		{"vector 7 and 33: a named choice", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Tools, r.Choice = []canon.Tool{f}, canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("f")}
		}, tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, ""},
		{"vector 34: required, one at a time", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Tools, r.Choice = []canon.Tool{f}, canon.Choice{Mode: canon.ChoiceRequired, Parallel: canon.Raw("false")}
		}, tools + `,"tool_choice":"required","parallel_tool_calls":false`, ""},
		{"vector 8: strict is dropped by policy", canon.Responses, func(r *canon.Request, p *dialect.Policy) {
			p.StrictTools = "drop"
			r.Tools = []canon.Tool{f, {Kind: canon.FunctionTool, Name: canon.Text("g"), Strict: canon.Raw("false"), Parameters: canon.Raw(`{"a":1}`), Description: canon.Text("d"), Path: "tools[1]"}}
		}, `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},` +
			`{"type":"function","function":{"name":"g","description":"d","parameters":{"a":1}}}]`, "tools[0].strict policy\n"},
		{"hints of a tool", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			g := f
			g.Cache, g.Extra = canon.Raw("{}"), []canon.Member{{Name: canon.Text("defer_loading"), Value: canon.Raw("true")}}
			r.Tools = []canon.Tool{g}
		}, tools, "tools[0].defer_loading unknown\ntools[0].cache_control no_equivalent\n"},
		{"a custom tool", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Tools = []canon.Tool{{Kind: canon.CustomTool, Name: canon.Text("e"), Grammar: canon.Raw(`{"type":"grammar","syntax":"lark","definition":"x"}`)}}
			r.Choice = canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("e"), Custom: true}
		}, `,"tools":[{"type":"custom","custom":{"name":"e","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}],"tool_choice":{"type":"custom","custom":{"name":"e"}}`, ""},
		{"a hosted tool that is passed", canon.Responses, func(r *canon.Request, p *dialect.Policy) {
			p.HostedTools = "pass"
			r.Tools = []canon.Tool{{Kind: canon.HostedTool, Raw: canon.Raw(`{"type":"web_search"}`)}}
		}, `,"tools":[{"type":"web_search"}]`, ""},
		{"a choice that nobody knows", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Tools, r.Choice = []canon.Tool{f}, canon.Choice{Mode: canon.ChoiceAuto, Raw: canon.Raw("{}")}
		}, tools + `,"tool_choice":"auto"`, "tool_choice unknown\n"},
		{"vector 13: nothing without tools", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Choice = canon.Choice{Mode: canon.ChoiceAuto, Parallel: canon.Raw("true")}
		}, ``, ""},
		{"vector 11: a schema", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Format = canon.Format{Kind: canon.FormatSchema, Name: canon.Text("n"), Schema: canon.Raw(`{"a":1}`), Strict: canon.Raw("true")}
		}, `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":1},"strict":true}}`, ""},
		{"a schema without a name", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Format = canon.Format{Kind: canon.FormatSchema, Schema: canon.Raw(`{"a":1}`)}
		}, `,"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{"a":1}}}`, ""},
		{"vector 14: effort", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Thinking = canon.Thinking{Effort: canon.Text("xhigh"), Summary: canon.Text("auto")}
		}, `,"reasoning_effort":"xhigh"`, ""},
		{"vector 35: stop, top_k and a budget", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Stop, r.Params[canon.ParamTopK] = []canon.Text{canon.Text("x")}, canon.Raw("5")
			r.Thinking = canon.Thinking{Mode: canon.ThinkingOn, Budget: canon.Raw("1024"), Path: "thinking"}
		}, `,"top_k":5,"stop":["x"],"thinking_token_budget":1024`, ""},
		{"the same without extensions", canon.Messages, func(r *canon.Request, p *dialect.Policy) {
			p.ChatExtensions = false
			r.Params[canon.ParamTopK] = canon.Raw("5")
			r.Thinking = canon.Thinking{Mode: canon.ThinkingOn, Budget: canon.Raw("1024"), Path: "thinking"}
		}, ``, "top_k policy\nthinking.budget_tokens policy\n"},
		{"thinking off", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Thinking = canon.Thinking{Mode: canon.ThinkingOff, Path: "thinking"}
		}, `,"chat_template_kwargs":{"enable_thinking":false}`, ""},
		{"thinking off without extensions", canon.Messages, func(r *canon.Request, p *dialect.Policy) {
			p.ChatExtensions = false
			r.Thinking = canon.Thinking{Mode: canon.ThinkingOff, Path: "thinking"}
		}, ``, "thinking policy\n"},
		{"adaptive thinking says nothing", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Thinking = canon.Thinking{Mode: canon.ThinkingAdaptive, Path: "thinking"}
		}, ``, ""},
		{"limits by either name, logprobs that are implied, a stream", canon.Responses, func(r *canon.Request, p *dialect.Policy) {
			p.MaxTokensName, r.Stream = "max_completion_tokens", true
			r.Params[canon.ParamMaxTokens], r.Params[canon.ParamTopLogprobs] = canon.Raw("9"), canon.Raw("3")
		}, `,"max_completion_tokens":9,"logprobs":true,"top_logprobs":3,"stream":true,"stream_options":{"include_usage":true}`, ""},
		{"no top logprobs are no logprobs", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Params[canon.ParamTopLogprobs] = canon.Raw("0")
		}, ``, ""},
		{"Responses' own names are Chat's", canon.Responses, func(r *canon.Request, _ *dialect.Policy) {
			r.Params[canon.ParamMetadata], r.Params[canon.ParamStore], r.Params[canon.ParamServiceTier] = canon.Raw(`{"a":"b"}`), canon.Raw("false"), canon.Raw(`"flex"`)
			r.Params[canon.ParamPromptCacheKey], r.Params[canon.ParamVerbosity] = canon.Raw(`"k"`), canon.Raw(`"low"`)
		}, `,"verbosity":"low","metadata":{"a":"b"},"service_tier":"flex","store":false,"prompt_cache_key":"k"`, ""},
		{"what only Messages has", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Params[canon.ParamMetadata], r.Params[canon.ParamServiceTier] = canon.Raw(`{"user_id":"x"}`), canon.Raw(`"standard_only"`)
			r.Params[canon.ParamContextManagement], r.Params[canon.ParamContainer] = canon.Raw(`{"edits":1}`), canon.Raw(`"c"`)
			r.Params[canon.ParamMCPServers], r.Params[canon.ParamCacheControl] = canon.Raw("[1]"), canon.Raw(`{"type":"ephemeral"}`)
			r.Extra = []canon.Member{{Name: canon.Text("speed"), Value: canon.Raw(`"fast"`)}}
		}, ``, "metadata.user_id no_equivalent\nservice_tier no_equivalent\ncontext_management no_equivalent\ncontainer no_equivalent\n" +
			"mcp_servers no_equivalent\ncache_control no_equivalent\nspeed unknown\n"},
		{"empty members that only Messages has", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Params[canon.ParamContextManagement], r.Params[canon.ParamMCPServers] = canon.Raw("{}"), canon.Raw("[]")
		}, ``, ""},
		{"the tier of Messages that is everybody's", canon.Messages, func(r *canon.Request, _ *dialect.Policy) {
			r.Params[canon.ParamServiceTier] = canon.Raw(`"auto"`)
		}, ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := callOptions()
			r := askFrom(c.from, hi())
			c.set(r, o.Policy)
			if got, want := writeRequest(t, r, o), `{"model":"m","messages":[`+u+`]`+c.want+`}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if got := lossLines(o); got != c.losses {
				t.Errorf("losses\ngot  %s\nwant %s", got, c.losses)
			}
		})
	}
}
