package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// Chats of Google's SDK keep the turns that they find valid. They find every stream valid that has an end, with keep-alives in it, and forget none
// of its parts.
func TestGeminiChatsRemember(t *testing.T) {
	for _, x := range streams(t) {
		t.Run(x.name, func(t *testing.T) {
			policy := rewrite.DefaultPolicy()
			client, upstream := translator(t, canon.Gemini), translator(t, x.dialect)
			sent := translate(t, client, upstream, geminiSDK{}.body(t, askOf(t, &x)), x.response, &policy, true)
			if sent.failed != nil {
				return // of which a chat rightly keeps nothing
			}
			sdk := geminiSDK{}.client(t, "http://sidecar.example", func(*http.Request) (*http.Response, error) { return answered(sent.wire), nil })
			chat, err := sdk.Chats.Create(context.Background(), "m", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range chat.SendStream(context.Background(), genai.NewPartFromText("hi")) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if curated, all := chat.History(true), chat.History(false); len(curated) == 0 || curated[0].Role != genai.RoleUser {
				t.Errorf("the chat has forgotten the turn: %d of %d contents are left\n%s", len(curated), len(all), sent.wire)
			}
			var parts []*genai.Part
			for _, c := range chat.History(true) {
				if c.Role == genai.RoleModel {
					parts = append(parts, c.Parts...)
				}
			}
			got := geminiSDK{}.parts(t, &genai.Content{Role: genai.RoleModel, Parts: parts})
			want := saidOf(t, decode(t, client, sent.wire)).Parts
			for i := range want { // what holds a signature and no text is no data for the SDK
				want[i].Sealed = i < len(got) && got[i].Sealed
			}
			equal(t, "the chat has what was said", said{Parts: want}.valued(), said{Parts: got}.valued())
		})
	}
}

// A conversation with tools in one chat, in front of each upstream: thoughts and calls side by side come back to the model, and are counted.
func TestGeminiChat(t *testing.T) {
	for _, upstream := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
		t.Run(string(upstream), func(t *testing.T) {
			client, _ := geminiSDK{}.at(t, server{root: demo(t, upstream)})
			parameters := &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString}}, Required: []string{"city"}}
			chat, err := client.Chats.Create(patient(t), "rolltap-demo", &genai.GenerateContentConfig{
				Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "get_weather", Description: "the weather", Parameters: parameters}}}},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var results []*genai.Part
			for chunk, err := range chat.SendStream(patient(t), genai.NewPartFromText("Think: use the weather tool twice in Paris")) {
				if err != nil {
					t.Fatal(err)
				}
				for _, call := range chunk.FunctionCalls() {
					results = append(results, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name, Response: map[string]any{"output": "18 degrees"}}})
				}
			}
			if len(results) != 2 {
				t.Fatalf("%d calls", len(results))
			}
			res, err := chat.Send(patient(t), results...)
			if err != nil || !strings.Contains(res.Text(), "18 degrees") {
				t.Errorf("%v: %+v", err, res)
			}
			if n := len(chat.History(true)); n < 4 {
				t.Errorf("the chat has %d contents", n)
			}
			count, err := client.Models.CountTokens(patient(t), "rolltap-demo", genai.Text("hi"), nil)
			if err != nil || count.TotalTokens == 0 {
				t.Errorf("a count: %v %+v", err, count)
			}
		})
	}
}
