package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// demoDialect is how the demo speaks a dialect. A conversation is a request body that grows.
type demoDialect struct {
	name, path string
	ask        func(prompt string, tools bool) map[string]any
	// answer adds the model's answer and the results of the tools that it called; false when it called none.
	answer func(body map[string]any, response []byte) bool
}

// demoDialects is what the demo sends. The embedded model speaks chat alone; the others are translated.
func demoDialects() []demoDialect {
	return []demoDialect{
		{"chat", "/v1/chat/completions", askChat, answerChat},
		{"messages", "/v1/messages", askMessages, answerMessages},
		{"responses", "/v1/responses", askResponses, answerResponses},
	}
}

// demoScenario is a prompt, sent once as a stream and once unary.
type demoScenario struct {
	rollout, prompt string
	tools           bool
}

var demoScenarios = [...]demoScenario{
	{"demo-text", "What is the capital of France?", false},
	{"demo-reasoning", "Think about it: why is the sky blue?", false},
	{"demo-parallel", "Compare the weather in Paris and Rome, both in parallel.", true},
	{"demo-tools", "What is the weather in Paris?", true},
}

// trainingPath in front of a path asks for token ids. The demo asks for those of every call.
const trainingPath = "/training-token-capture"

// demoTurns bounds a conversation, should the model call tools for ever.
const demoTurns = 4

// callTimeout is far above what a call of the demo takes.
const callTimeout = 30 * time.Second

// demoRun sends calls and remembers them.
type demoRun struct {
	base, store string
	client      *http.Client
	sent        []sentCall
}

type sentCall struct {
	rollout, dialect string
	stream           bool
	id               string // as the answer's head told it; "" when there was none
	err              error
}

func (r *demoRun) rollouts() []string {
	var ids []string
	for _, s := range r.sent {
		if !slices.Contains(ids, s.rollout) {
			ids = append(ids, s.rollout)
		}
	}
	return ids
}

// play holds the scenario's conversation, as a stream and unary. The next turn is made of the record of the last one, which
// is durable when its answer has ended: the demo reads no answer twice.
func (r *demoRun) play(ctx context.Context, d demoDialect, s demoScenario) {
	for _, stream := range []bool{true, false} {
		body := d.ask(s.prompt, s.tools)
		body["stream"] = stream
		if stream && d.name == "chat" {
			body["stream_options"] = map[string]any{"include_usage": true}
		}
		for range demoTurns {
			sent := sentCall{rollout: s.rollout + "-" + d.name, dialect: d.name, stream: stream}
			sent.id, sent.err = r.send(ctx, sent.rollout, d.path, body)
			r.sent = append(r.sent, sent)
			record, found := r.record(sent)
			if sent.err != nil || !found || !d.answer(body, record.response) {
				break
			}
		}
	}
}

// send makes one call and reads its answer to the end.
func (r *demoRun) send(ctx context.Context, rollout, path string, body map[string]any) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/ng-rollout/"+rollout+trainingPath+path, bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rolltap-demo")
	res, err := r.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	id = res.Header.Get("x-rolltap-call-id")
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return id, err
	}
	if res.StatusCode != http.StatusOK {
		return id, fmt.Errorf("status %s", res.Status)
	}
	return id, nil
}

// record finds the call in the store; its bytes are copies.
func (r *demoRun) record(s sentCall) (call, bool) {
	if s.id == "" {
		return call{}, false
	}
	lines, err := capture.OpenLines(r.store, s.rollout)
	if err != nil {
		return call{}, false
	}
	defer lines.Close()
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) || err != nil {
			return call{}, false
		}
		if l.Damage != nil || l.Torn || text(l.Raw, "model_call_id") != s.id {
			continue
		}
		c, err := newCallReader().read(bytes.Clone(l.Raw))
		return c, err == nil
	}
}

func askChat(prompt string, tools bool) map[string]any {
	body := map[string]any{"model": demoModel, "messages": []any{
		map[string]any{"role": "system", "content": demoSystem},
		map[string]any{"role": "user", "content": prompt},
	}}
	if tools {
		body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{
			"name": weatherName, "description": weatherText, "parameters": weatherSchema(),
		}}}
	}
	return body
}

func answerChat(body map[string]any, response []byte) bool {
	choices := jsonx.Array(jsonx.Get(response, "choices"))
	if !choices.Next() {
		return false
	}
	message := jsonx.Get(choices.Value(), "message")
	messages := append(body["messages"].([]any), json.RawMessage(message))
	called := false
	for it := jsonx.Array(jsonx.Get(message, "tool_calls")); it.Next(); called = true {
		messages = append(messages, map[string]any{
			"role": "tool", "tool_call_id": text(it.Value(), "id"), "content": weather(text(jsonx.Get(it.Value(), "function"), "arguments")),
		})
	}
	body["messages"] = messages
	return called
}

func askMessages(prompt string, tools bool) map[string]any {
	body := map[string]any{
		"model": demoModel, "max_tokens": 512, "system": demoSystem,
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	}
	if tools {
		body["tools"] = []any{map[string]any{"name": weatherName, "description": weatherText, "input_schema": weatherSchema()}}
	}
	return body
}

func answerMessages(body map[string]any, response []byte) bool {
	content := jsonx.Get(response, "content")
	messages := append(body["messages"].([]any), map[string]any{"role": "assistant", "content": json.RawMessage(content)})
	var results []any
	for it := jsonx.Array(content); it.Next(); {
		if text(it.Value(), "type") == "tool_use" {
			results = append(results, map[string]any{
				"type": "tool_result", "tool_use_id": text(it.Value(), "id"), "content": weather(string(jsonx.Get(it.Value(), "input"))),
			})
		}
	}
	body["messages"] = append(messages, map[string]any{"role": "user", "content": results})
	return results != nil
}

func askResponses(prompt string, tools bool) map[string]any {
	body := map[string]any{
		"model": demoModel, "instructions": demoSystem, "store": false,
		"input": []any{map[string]any{"role": "user", "content": prompt}},
	}
	if tools {
		body["tools"] = []any{map[string]any{
			"type": "function", "name": weatherName, "description": weatherText, "parameters": weatherSchema(), "strict": false,
		}}
	}
	return body
}

func answerResponses(body map[string]any, response []byte) bool {
	input := body["input"].([]any)
	var results []any
	for it := jsonx.Array(jsonx.Get(response, "output")); it.Next(); {
		item := it.Value()
		input = append(input, json.RawMessage(item))
		if text(item, "type") == "function_call" {
			results = append(results, map[string]any{
				"type": "function_call_output", "call_id": text(item, "call_id"), "output": weather(text(item, "arguments")),
			})
		}
	}
	body["input"] = append(input, results...)
	return results != nil
}

const (
	demoModel   = "rolltap-demo"
	demoSystem  = "You are a helpful assistant."
	weatherName = "get_weather"
	weatherText = "Current weather of a city."
)

func weatherSchema() map[string]any {
	return map[string]any{
		"type": "object", "required": []string{"city"},
		"properties": map[string]any{"city": map[string]any{"type": "string", "description": "Name of the city."}},
	}
}

// weather is the demo's tool.
func weather(arguments string) string {
	city := text([]byte(arguments), "city")
	if city == "" {
		city = "there"
	}
	return "18 °C and sunny in " + city
}
