package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// pixel is a PNG of one point.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// wishes is what a request says, in whatever dialect.
type wishes struct {
	Conversation []string
	Tools        []string
	Schema       map[string]any
	Required     bool // a tool has to be called
	Temperature  string
	MaxTokens    string
	Stop         []string
}

// wished is what every SDK asks for in TestWishes.
func wished() wishes {
	return wishes{
		Conversation: []string{
			"system: Be brief.", "user: What is this?", "user: image/png " + pixel, `assistant: call f {"x":1}`, `assistant: call g {"y":2}`,
			"tool: result c1 R1", "tool: result c2 R2", "user: Go on.",
		},
		Tools:       []string{"f the first", "g the second"},
		Schema:      map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "string"}}, "required": []any{"answer"}},
		Required:    true,
		Temperature: "0.5", MaxTokens: "4000", Stop: []string{"END"},
	}
}

// TestWishes: a system prompt, an image, calls side by side and their results, tools, a forced call, a schema for the answer and sampling, as each
// SDK writes them, reach each upstream as they were meant, and the answer is read.
func TestWishes(t *testing.T) {
	answers := byDialect(wholes(t))
	for _, upstream := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
		answer := answers[upstream][0]
		for _, x := range answers[upstream] {
			if a := read(t, translator(t, upstream), x.response); len(a.Parts) == 1 && a.Stop.Reason == canon.StopEnd {
				answer = x
			}
		}
		answer.name = "wishes"
		s := serve(t, upstream, []exchange{answer})
		for client, send := range map[canon.Dialect]func(*testing.T, server, wishes){
			canon.Chat: chatWishes, canon.Messages: messagesWishes, canon.Responses: responsesWishes, canon.Gemini: geminiWishes,
		} {
			t.Run(fmt.Sprintf("%s to %s", client, upstream), func(t *testing.T) {
				want := wished()
				if upstream == canon.Responses || client == canon.Responses {
					want.Stop = nil // Responses has no stop sequences, and they are refused
				}
				if send(t, s.rollout("wishes-"+string(client)), want); t.Failed() {
					return
				}
				body := s.sent("wishes")
				if d := cmp.Diff(want, wishesOf(t, translator(t, upstream), body)); d != "" {
					t.Errorf("what reaches the upstream (-want +got):\n%s\n%s", d, body)
				}
			})
		}
	}
}

// wishesOf reads a request with a reader of ours.
func wishesOf(t *testing.T, d dialect.Dialect, body []byte) (w wishes) {
	t.Helper()
	policy := dialect.DefaultPolicy()
	r, err := d.ReadCall(body, dialect.Options{Policy: &policy, ID: "x"})
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	roles := [...]string{"?", "system", "developer", "user", "assistant", "tool"}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			said := unquoted(p.Text)
			switch p.Type {
			case canon.TextPart:
			case canon.ImagePart:
				said = unquoted(p.Media.MediaType) + " " + unquoted(p.Media.Data)
				if url := unquoted(p.Media.URL); url != "" {
					said = strings.Replace(strings.TrimPrefix(url, "data:"), ";base64,", " ", 1)
				}
			case canon.CallPart:
				said = "call " + unquoted(p.Call.Name) + " " + unquoted(p.Call.Arguments)
			case canon.ResultPart:
				said = "result " + unquoted(p.Result.CallID)
				for _, in := range p.Result.Parts {
					said += " " + unquoted(in.Text)
				}
			default:
				t.Errorf("a part of type %d: %s", p.Type, p.Raw)
			}
			w.Conversation = append(w.Conversation, roles[m.Role]+": "+said)
		}
	}
	for _, tool := range r.Tools {
		w.Tools = append(w.Tools, unquoted(tool.Name)+" "+unquoted(tool.Description))
	}
	if r.Format.Kind == canon.FormatSchema {
		if err := json.Unmarshal(r.Format.Schema, &w.Schema); err != nil {
			t.Error(err)
		}
	}
	for _, stop := range r.Stop {
		w.Stop = append(w.Stop, unquoted(stop))
	}
	w.Required = r.Choice.Mode == canon.ChoiceRequired
	w.Temperature, w.MaxTokens = string(r.Params[canon.ParamTemperature]), string(r.Params[canon.ParamMaxTokens])
	return w
}

func parameters(name string) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": "integer"}}}
}

func chatWishes(t *testing.T, at server, w wishes) {
	call := func(id, name, arguments string) openai.ChatCompletionMessageToolCallUnionParam {
		return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: id, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: name, Arguments: arguments},
		}}
	}
	tool := func(name, description, parameter string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Description: openai.String(description), Parameters: parameters(parameter)})
	}
	calls := openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{call("c1", "f", `{"x":1}`), call("c2", "g", `{"y":2}`)}}
	service := chatSDK{}.service(at)
	completion, err := service.Completions.New(patient(t), openai.ChatCompletionNewParams{
		Model: "wishes", MaxCompletionTokens: openai.Int(4000), Temperature: openai.Float(0.5), Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: w.Stop},
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."),
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.TextContentPart("What is this?"), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + pixel}),
			}),
			{OfAssistant: &calls}, openai.ToolMessage("R1", "c1"), openai.ToolMessage("R2", "c2"), openai.UserMessage("Go on."),
		},
		Tools:      []openai.ChatCompletionToolUnionParam{tool("f", "the first", "x"), tool("g", "the second", "y")},
		ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: w.Schema},
		}},
	})
	if err != nil || len(completion.Choices) != 1 || completion.Choices[0].Message.Content == "" || completion.Usage.CompletionTokens == 0 {
		t.Errorf("%v: %+v", err, completion)
	}
}

func messagesWishes(t *testing.T, at server, w wishes) {
	tool := func(name, description, parameter string) anthropic.ToolUnionParam {
		return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: name, Description: anthropic.String(description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: parameters(parameter)["properties"]}}}
	}
	service := messagesSDK{}.service(at)
	message, err := service.New(patient(t), anthropic.MessageNewParams{
		Model: "wishes", MaxTokens: 4000, Temperature: anthropic.Float(0.5), StopSequences: w.Stop,
		System: []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{
			anthropic.NewUserMessage(anthropic.NewTextBlock("What is this?"), anthropic.NewImageBlockBase64("image/png", pixel)),
			anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("c1", json.RawMessage(`{"x":1}`), "f"), anthropic.NewToolUseBlock("c2", json.RawMessage(`{"y":2}`), "g")),
			anthropic.NewUserMessage(anthropic.NewToolResultBlock("c1", "R1", false), anthropic.NewToolResultBlock("c2", "R2", false), anthropic.NewTextBlock("Go on.")),
		},
		Tools:        []anthropic.ToolUnionParam{tool("f", "the first", "x"), tool("g", "the second", "y")},
		ToolChoice:   anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}},
		OutputConfig: anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: w.Schema}},
	})
	if err != nil || len(message.Content) == 0 || message.Content[0].Text == "" || message.Usage.OutputTokens == 0 {
		t.Errorf("%v: %+v", err, message)
	}
}

func responsesWishes(t *testing.T, at server, w wishes) {
	tool := func(name, description, parameter string) responses.ToolUnionParam {
		return responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: name, Description: openai.String(description), Parameters: parameters(parameter), Strict: openai.Bool(false)}}
	}
	image := responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{ImageURL: openai.String("data:image/png;base64," + pixel), Detail: "auto"}}
	p := responses.ResponseNewParams{
		Model: "wishes", MaxOutputTokens: openai.Int(4000), Temperature: openai.Float(0.5), Instructions: openai.String("Be brief."),
		Tools:      []responses.ToolUnionParam{tool("f", "the first", "x"), tool("g", "the second", "y")},
		ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsRequired)},
		Text:       responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigParamOfJSONSchema("answer", w.Schema)},
	}
	p.Input.OfInputItemList = responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText("What is this?"), image}, "user"),
		responses.ResponseInputItemParamOfFunctionCall(`{"x":1}`, "c1", "f"), responses.ResponseInputItemParamOfFunctionCall(`{"y":2}`, "c2", "g"),
		functionOutput("c1", "R1"), functionOutput("c2", "R2"), responses.ResponseInputItemParamOfMessage("Go on.", "user"),
	}
	service := responsesSDK{}.service(at)
	response, err := service.New(patient(t), p)
	if err != nil || response.OutputText() == "" || response.Usage.OutputTokens == 0 {
		t.Errorf("%v: %+v", err, response)
	}
}

func geminiWishes(t *testing.T, at server, w wishes) {
	tool := func(name, description, parameter string) *genai.FunctionDeclaration {
		return &genai.FunctionDeclaration{Name: name, Description: description,
			Parameters: &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{parameter: {Type: genai.TypeInteger}}}}
	}
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(id, name, output string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: map[string]any{"output": output}}}
	}
	call := func(id, name string, args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: args}}
	}
	client, _ := geminiSDK{}.at(t, at)
	res, err := client.Models.GenerateContent(patient(t), "wishes", []*genai.Content{
		{Role: genai.RoleUser, Parts: []*genai.Part{{Text: "What is this?"}, genai.NewPartFromBytes(data, "image/png")}},
		{Role: genai.RoleModel, Parts: []*genai.Part{call("c1", "f", map[string]any{"x": 1}), call("c2", "g", map[string]any{"y": 2})}},
		{Role: genai.RoleUser, Parts: []*genai.Part{answer("c1", "f", "R1"), answer("c2", "g", "R2"), {Text: "Go on."}}},
	}, &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser), Temperature: genai.Ptr[float32](0.5), MaxOutputTokens: 4000, StopSequences: w.Stop,
		Tools:            []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{tool("f", "the first", "x"), tool("g", "the second", "y")}}},
		ToolConfig:       &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny}},
		ResponseMIMEType: "application/json",
		ResponseSchema:   &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{"answer": {Type: genai.TypeString}}, Required: []string{"answer"}},
	})
	if err != nil || res.Text() == "" || res.UsageMetadata == nil || reflect.ValueOf(*res.UsageMetadata).IsZero() {
		t.Errorf("%v: %+v", err, res)
	}
}
