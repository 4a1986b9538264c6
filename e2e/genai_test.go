package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"rolltap/rewrite/canon"
)

// geminiSDK is google.golang.org/genai. It has no accumulator: what applications do with chunks is done here.
type geminiSDK struct{}

func (geminiSDK) dialect() canon.Dialect { return canon.Gemini }

func (geminiSDK) stopWord(reason canon.StopReason, _ bool) string {
	switch reason {
	case canon.StopLength, canon.StopContext:
		return "MAX_TOKENS"
	case canon.StopFilter:
		return "SAFETY"
	}
	return "STOP"
}

// transport answers the SDK's requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (geminiSDK) client(tb testing.TB, root string, f transport) *genai.Client {
	tb.Helper()
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: f}, HTTPOptions: genai.HTTPOptions{BaseURL: root},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// geminiParams are the arguments of a call.
type geminiParams struct {
	model    string
	contents []*genai.Content
	config   *genai.GenerateContentConfig
}

func (geminiSDK) params(a ask) geminiParams {
	p := geminiParams{model: a.model, config: &genai.GenerateContentConfig{
		MaxOutputTokens: int32(a.maxTokens), StopSequences: a.stop, ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true},
	}}
	names := map[string]string{} // of calls, by their ids
	for _, t := range a.turns {
		switch t.role {
		case "user":
			p.contents = append(p.contents, genai.NewContentFromText(t.text, genai.RoleUser))
		case "tool":
			p.contents = append(p.contents, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
				ID: t.callID, Name: names[t.callID], Response: map[string]any{"output": t.text},
			}}}})
		case "assistant":
			c := &genai.Content{Role: genai.RoleModel}
			if t.reasoning != "" {
				c.Parts = append(c.Parts, &genai.Part{Text: t.reasoning, Thought: true})
			}
			if t.text != "" {
				c.Parts = append(c.Parts, &genai.Part{Text: t.text})
			}
			for _, call := range t.calls {
				var args map[string]any
				json.Unmarshal([]byte(call.Arguments), &args)
				names[call.ID] = call.Name
				c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Name, Args: args}})
			}
			p.contents = append(p.contents, c)
		}
	}
	if len(a.tools) > 0 {
		var tools genai.Tool
		for _, t := range a.tools {
			tools.FunctionDeclarations = append(tools.FunctionDeclarations, &genai.FunctionDeclaration{Name: t.name, Description: t.description, ParametersJsonSchema: t.parameters})
		}
		p.config.Tools = []*genai.Tool{&tools}
	}
	return p
}

func (g geminiSDK) body(tb testing.TB, a ask) []byte {
	tb.Helper()
	var body []byte
	client := g.client(tb, "http://sidecar.example", func(req *http.Request) (*http.Response, error) {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			tb.Fatal(err)
		}
		return answered(nil), nil
	})
	p := g.params(a)
	for range client.Models.GenerateContentStream(context.Background(), p.model, p.contents, p.config) {
		break
	}
	return body
}

func (g geminiSDK) fold(tb testing.TB, wire []byte) (said, *failure) {
	tb.Helper()
	client := g.client(tb, "http://sidecar.example", func(*http.Request) (*http.Response, error) { return answered(wire), nil })
	content, s, f := g.accumulate(tb, client.Models.GenerateContentStream(context.Background(), "m", genai.Text("hi"), nil), nil)
	s.Parts = g.parts(tb, content)
	return s, f
}

func (g geminiSDK) whole(tb testing.TB, body []byte) said {
	tb.Helper()
	client := g.client(tb, "http://sidecar.example", func(req *http.Request) (*http.Response, error) {
		res := answered(body)
		res.Header.Set("Content-Type", "application/json")
		return res, nil
	})
	res, err := client.Models.GenerateContent(context.Background(), "m", genai.Text("hi"), nil)
	if err != nil {
		tb.Fatalf("the SDK cannot read the answer: %v\n%s", err, body)
	}
	return g.saidWhole(tb, res)
}

// at is a client of a server, and the status of its last answer.
func (g geminiSDK) at(tb testing.TB, s server) (*genai.Client, *int) {
	tb.Helper()
	status := new(int)
	return g.client(tb, s.root, func(req *http.Request) (*http.Response, error) {
		res, err := s.keep(req, http.DefaultTransport.RoundTrip)
		if err == nil {
			*status = res.StatusCode
		}
		return res, err
	}), status
}

func (g geminiSDK) stream(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	content, all, f := g.send(ctx, tb, s, g.params(a))
	all.Parts = g.parts(tb, content)
	return all, f
}

func (g geminiSDK) send(ctx context.Context, tb testing.TB, s server, p geminiParams) (*genai.Content, said, *failure) {
	tb.Helper()
	client, status := g.at(tb, s)
	return g.accumulate(tb, client.Models.GenerateContentStream(ctx, p.model, p.contents, p.config), status)
}

func (g geminiSDK) unary(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	client, status := g.at(tb, s)
	p := g.params(a)
	res, err := client.Models.GenerateContent(ctx, p.model, p.contents, p.config)
	if err != nil {
		return said{}, g.failure(tb, err, status)
	}
	return g.saidWhole(tb, res), nil
}

// accumulate appends the parts of all chunks, as the chats of the SDK do.
func (g geminiSDK) accumulate(tb testing.TB, chunks iter.Seq2[*genai.GenerateContentResponse, error], status *int) (*genai.Content, said, *failure) {
	tb.Helper()
	content := &genai.Content{Role: genai.RoleModel}
	var all said
	for chunk, err := range chunks {
		if err != nil {
			return content, all, g.failure(tb, err, status)
		}
		if all.Stop != "" {
			tb.Errorf("a chunk behind the finish reason: %+v", *chunk)
		}
		all.Usage = g.usage(all.Usage, chunk)
		for _, c := range chunk.Candidates {
			if c.Index != 0 {
				tb.Errorf("candidate %d", c.Index)
			}
			if c.Content != nil {
				content.Parts = append(content.Parts, c.Content.Parts...)
			}
			all.Stop = string(c.FinishReason)
		}
	}
	if all.Stop == "" {
		tb.Errorf("the stream ends without a finish reason and without an error")
	}
	return content, all, nil
}

func (geminiSDK) usage(before usage, chunk *genai.GenerateContentResponse) usage {
	u := chunk.UsageMetadata
	if u == nil {
		return before
	}
	return usage{int64(u.PromptTokenCount), int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount), int64(u.CachedContentTokenCount), int64(u.ThoughtsTokenCount)}
}

func (g geminiSDK) saidWhole(tb testing.TB, res *genai.GenerateContentResponse) said {
	tb.Helper()
	s := said{Usage: g.usage(usage{}, res)}
	if len(res.Candidates) != 1 {
		tb.Errorf("%d candidates", len(res.Candidates))
		return s
	}
	s.Stop, s.Parts = string(res.Candidates[0].FinishReason), g.parts(tb, res.Candidates[0].Content)
	return s
}

// parts joins texts that go on with each other. A signature is that of the thoughts in front of its part, which need not be shown.
func (geminiSDK) parts(tb testing.TB, content *genai.Content) (parts []part) {
	tb.Helper()
	if content == nil {
		tb.Errorf("a candidate without content")
		return nil
	}
	if content.Role != genai.RoleModel {
		tb.Errorf("a content of role %q", content.Role)
	}
	last := func() *part {
		if len(parts) == 0 {
			return &part{}
		}
		return &parts[len(parts)-1]
	}
	for _, p := range content.Parts {
		if len(p.ThoughtSignature) > 0 {
			if last().Kind != "reasoning" || last().Sealed {
				parts = append(parts, part{Kind: "reasoning"})
			}
			last().Sealed = true
		}
		switch {
		case p.FunctionCall != nil:
			arguments, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				tb.Fatal(err)
			}
			parts = append(parts, part{Kind: "call", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(arguments)})
		case p.Text != "":
			kind := "text"
			if p.Thought {
				kind = "reasoning"
			}
			if last().Kind != kind || last().Sealed {
				parts = append(parts, part{Kind: kind})
			}
			last().Text += p.Text
		}
	}
	return parts
}

// failure has the status only of an answer that had it: an error inside a stream says one as well.
func (geminiSDK) failure(tb testing.TB, err error, status *int) *failure {
	tb.Helper()
	var e genai.APIError
	if !errors.As(err, &e) {
		tb.Fatalf("the SDK's error is of type %T: %v", err, err)
	}
	f := &failure{Type: e.Status, Message: e.Message}
	if status != nil && *status >= 400 {
		if f.Status = *status; e.Code != *status {
			tb.Errorf("an error with status %d says %d", *status, e.Code)
		}
	}
	return f
}

// valued has arguments as Gemini has them, which are an object: its members in order, {} where it is none.
func (s said) valued() said {
	parts := make([]part, len(s.Parts))
	for i, p := range s.Parts {
		if p.Kind == "call" {
			arguments := map[string]any{}
			if json.Unmarshal([]byte(p.Arguments), &arguments) != nil || arguments == nil {
				arguments = map[string]any{}
			}
			var out bytes.Buffer
			json.NewEncoder(&out).Encode(arguments)
			p.Arguments = string(bytes.TrimSpace(out.Bytes()))
		}
		parts[i] = p
	}
	s.Parts = parts
	return s
}
