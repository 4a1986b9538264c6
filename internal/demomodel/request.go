package demomodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxModelLen is what /v1/models tells. Coding agents send prompts of tens of
// thousands of tokens, and this tokenizer makes more of them than a real one.
const maxModelLen = 262144

// request holds the members of a chat request that the model knows. All others
// are accepted and ignored, as vLLM does.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Parallel            *bool           `json:"parallel_tool_calls"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                stopList        `json:"stop"`
	IncludeStop         bool            `json:"include_stop_str_in_output"`
	N                   *int            `json:"n"`
	Temperature         *float64        `json:"temperature"`
	Logprobs            bool            `json:"logprobs"`
	TopLogprobs         *int            `json:"top_logprobs"`
	ReturnTokenIDs      bool            `json:"return_token_ids"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	IncludeReasoning    *bool           `json:"include_reasoning"`
	ThinkingBudget      *int            `json:"thinking_token_budget"`
	TemplateKwargs      templateKwargs  `json:"chat_template_kwargs"`
	ResponseFormat      *responseFormat `json:"response_format"`
	ContinueFinal       bool            `json:"continue_final_message"`
	Fault               string          `json:"demo_fault"`
}

type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

type templateKwargs struct {
	EnableThinking *bool `json:"enable_thinking"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

type message struct {
	Role             string      `json:"role"`
	Content          contentText `json:"content"`
	Reasoning        string      `json:"reasoning"`
	ReasoningContent string      `json:"reasoning_content"` // the older name, used when there is no other
	ToolCalls        []toolCall  `json:"tool_calls"`
}

func (m message) thoughts() string {
	if m.Reasoning != "" {
		return m.Reasoning
	}
	return m.ReasoningContent
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Raw      json.RawMessage `json:"-"` // as sent: the template shows it to the model
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func (t *tool) UnmarshalJSON(b []byte) error {
	type plain tool
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	t.Raw = bytes.Clone(b)
	return nil
}

// contentText is the content of a message: a text, null, or a list of parts
// whose texts are joined by a newline.
type contentText struct {
	Text  string
	Image bool // a part that is no text
}

func (c *contentText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '[' {
		return json.Unmarshal(b, &c.Text) // null leaves it empty
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "" && p.Type != "text" {
			c.Image = true
			continue
		}
		texts = append(texts, p.Text)
	}
	c.Text = strings.Join(texts, "\n")
	return nil
}

// stopList is "stop": one text or several. Empty ones stop nothing.
type stopList []string

func (s *stopList) UnmarshalJSON(b []byte) error {
	var list []string
	if len(b) > 0 && b[0] == '"' {
		list = make([]string, 1)
		if err := json.Unmarshal(b, &list[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for _, t := range list {
		if t != "" {
			*s = append(*s, t)
		}
	}
	return nil
}

// The words of tool_choice, and one for a choice that names its tool.
const (
	choiceAuto     = "auto"
	choiceNone     = "none"
	choiceRequired = "required"
	choiceNamed    = "named"
)

// toolChoice returns the choice and, for a named one, its tool.
func (r *request) toolChoice() (string, *tool) {
	var word string
	if json.Unmarshal(r.ToolChoice, &word) == nil && word != "" {
		return word, nil
	}
	if name := r.namedTool(); name != "" {
		for i := range r.Tools {
			if r.Tools[i].Function.Name == name {
				return choiceNamed, &r.Tools[i]
			}
		}
	}
	if len(r.Tools) == 0 {
		return choiceNone, nil
	}
	return choiceAuto, nil
}

func (r *request) namedTool() string {
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(r.ToolChoice, &named) != nil {
		return ""
	}
	return named.Function.Name
}

func (r *request) choices() int {
	if r.N == nil {
		return 1
	}
	return *r.N
}

// maxNew is how many tokens may be generated behind a prompt. What does not fit
// into the context is cut without a word, as vLLM does.
func (r *request) maxNew(prompt int) int {
	left := maxModelLen - prompt
	if r.MaxCompletionTokens != nil {
		return min(*r.MaxCompletionTokens, left)
	}
	if r.MaxTokens != nil {
		return min(*r.MaxTokens, left)
	}
	return left
}

func (r *request) hidesReasoning() bool { return r.IncludeReasoning != nil && !*r.IncludeReasoning }

// wantsIDs and wantsLogprobs are off when reasoning is hidden: the ids would
// tell what the client must not see.
func (r *request) wantsIDs() bool      { return r.ReturnTokenIDs && !r.hidesReasoning() }
func (r *request) wantsLogprobs() bool { return r.Logprobs && !r.hidesReasoning() }

func (r *request) topLogprobs() int {
	if r.TopLogprobs == nil {
		return 0
	}
	return *r.TopLogprobs
}

// decode reads a body into v, and says what is wrong with it in vLLM's words.
func decode(r *http.Request, body []byte, v any) *problem {
	if ct := r.Header.Get("Content-Type"); ct != "" && !strings.Contains(strings.ToLower(ct), "json") {
		return &problem{http.StatusBadRequest, "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", typeValidation, ""}
	}
	err := json.Unmarshal(body, v)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at := fmt.Sprintf("body.%d", syntax.Offset)
		return &problem{http.StatusBadRequest, "1 validation error:\n  {'type': 'json_invalid', 'loc': '" + at +
			"', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}", typeValidation, at}
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		at := "body"
		if wrong.Field != "" {
			at += "." + wrong.Field
		}
		return invalid("type_error", at, "Input should be a valid "+wrong.Type.Kind().String(), 0)
	}
	if err != nil {
		return invalid("value_error", "body", "Input should be valid", 0)
	}
	return nil
}

// missing is the answer to a body without a member that must be there.
func missing(body []byte, at string) *problem {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members) // it was read once already; only the count is of interest
	return invalid("missing", at, "Field required", len(members))
}

// check refuses what vLLM refuses, in its order and its words.
func (r *request) check(o Options, body []byte) *problem {
	if r.Messages == nil {
		return missing(body, "body.messages")
	}
	for i, t := range r.Tools {
		if t.Function.Name == "" {
			return invalid("missing", fmt.Sprintf("body.tools.%d.function.name", i), "Field required", 1)
		}
	}
	if p := unknownModel(r.Model, o.Model); p != nil {
		return p
	}
	choice, named := r.toolChoice()
	switch {
	case r.StreamOptions != nil && !r.Stream:
		return refuse("Stream options can only be defined when `stream=True`.", "stream_options", "")
	case r.Tools != nil && len(r.Tools) == 0:
		return refuse("`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.", "tools", "")
	case len(r.ToolChoice) > 0 && choice != choiceNone && len(r.Tools) == 0:
		return refuse("When using `tool_choice`, `tools` must be set.", "tool_choice", "")
	case named == nil && r.namedTool() != "":
		return &problem{http.StatusBadRequest, "The tool specified in `tool_choice` does not match any of the specified `tools` (parameter=tool_choice)", typeBadRequest, "tool_choice"}
	case r.TopLogprobs != nil && *r.TopLogprobs > 0 && !r.Logprobs:
		return refuse("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs", "")
	case r.topLogprobs() > 20:
		return &problem{http.StatusBadRequest, fmt.Sprintf("Requested sample logprobs of %d, which is greater than max allowed: 20 (parameter=logprobs, value=%[1]d)", r.topLogprobs()), typeBadRequest, "logprobs"}
	case r.Temperature != nil && *r.Temperature < 0:
		got := pythonFloat(*r.Temperature)
		return refuse("temperature must be non-negative, got "+got+".", "temperature", got)
	case r.N != nil && *r.N < 1:
		return &problem{http.StatusBadRequest, fmt.Sprintf("n must be at least 1, got %d.", *r.N), typeBadRequest, ""}
	}
	for _, m := range r.Messages {
		if m.Content.Image {
			return &problem{http.StatusBadRequest, o.Model + " is not a multimodal model", typeBadRequest, ""}
		}
	}
	for _, limit := range []struct {
		name  string
		value *int
	}{{"max_completion_tokens", r.MaxCompletionTokens}, {"max_tokens", r.MaxTokens}} {
		if limit.value == nil {
			continue
		}
		if *limit.value < 1 {
			return refuse(fmt.Sprintf("%s must be at least 1, got %d.", limit.name, *limit.value), limit.name, fmt.Sprint(*limit.value))
		}
		if *limit.value > maxModelLen {
			return refuse(fmt.Sprintf("%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", limit.name, *limit.value, maxModelLen),
				limit.name, fmt.Sprint(*limit.value))
		}
	}
	return nil
}
