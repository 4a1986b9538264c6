package rewrite_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// gymFolders are the folders of testdata/gym, and how each one's conversions are made here. Each tells how ours differs from theirs.
func gymFolders() map[string]func(*testing.T, gymCase) []string {
	return map[string]func(*testing.T, gymCase) []string{
		"chat-request":                   sameRequest,
		"chat-request-to-responses":      requestBetween(canon.Chat, canon.Responses),
		"chat-response-to-messages":      answerBetween(canon.Messages, canon.Chat),
		"chat-response-to-responses":     answerBetween(canon.Responses, canon.Chat),
		"chat-stream":                    chatStream,
		"clients":                        clientRequest,
		"messages-request-to-chat":       requestBetween(canon.Messages, canon.Chat),
		"messages-request-to-responses":  requestBetween(canon.Messages, canon.Responses),
		"messages-response-to-responses": answerBetween(canon.Responses, canon.Messages),
		"messages-stream":                messagesStream,
		"responses-request-to-chat":      requestBetween(canon.Responses, canon.Chat),
		"responses-request-to-messages":  requestWithSettings,
		"responses-response-to-messages": answerBetween(canon.Messages, canon.Responses),
		"responses-stream":               responsesStream,
		"responses-stream-request":       requestBetween(canon.Responses, canon.Chat),
		"vllm-server":                    throughServer,
	}
}

func TestGymConversions(t *testing.T) {
	all := readAnnouncements(t)
	folders := gymFolders()
	entries, err := os.ReadDir("testdata/gym")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && folders[e.Name()] == nil {
			t.Errorf("nothing is made of testdata/gym/%s", e.Name())
		}
	}
	n := 0
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, c := range gymCases(t, folder) {
			all.check(t, c.name, folders[folder](t, c))
			n++
		}
	}
	if n < 241 {
		t.Errorf("only %d conversions were found", n)
	}
	for _, a := range all {
		if !a.needed {
			t.Errorf("differences.txt: %s %s is needed no more", a.files, a.difference)
		}
	}
}

func requestBetween(client, upstream canon.Dialect) func(*testing.T, gymCase) []string {
	return func(t *testing.T, c gymCase) []string {
		body, err := asGym(t, client, upstream).Request(c.Input)
		return outcome(t, c.Output, body, err, tidyRequest)
	}
}

// clientRequest is a request of a real client, whichever dialect it speaks: theirs of Chat has been validated only.
func clientRequest(t *testing.T, c gymCase) []string {
	var said map[string]json.RawMessage
	var validated struct{ Params json.RawMessage }
	if json.Unmarshal(c.Input, &said) != nil || json.Unmarshal(c.Output, &validated) != nil {
		t.Fatalf("%s is no request", c.name)
	}
	switch {
	case said["input"] != nil:
		return requestBetween(canon.Responses, canon.Chat)(t, c)
	case validated.Params != nil:
		return sameRequest(t, c)
	}
	return requestBetween(canon.Messages, canon.Chat)(t, c)
}

// sameRequest compares what goes to an upstream of the client's own dialect with what is left of the request once they have validated it.
func sameRequest(t *testing.T, c gymCase) []string {
	var validated struct{ Params json.RawMessage }
	if err := json.Unmarshal(c.Output, &validated); err == nil && validated.Params != nil {
		c.Output = validated.Params
	}
	policy := rewrite.DefaultPolicy()
	body, err := policy.Splice(c.Input, "", canon.Chat, new(canon.Losses))
	return outcome(t, c.Output, body, err, tidyRequest)
}

// requestWithSettings is a request for a Messages upstream, with the settings of its server.
func requestWithSettings(t *testing.T, c gymCase) []string {
	var in struct {
		Request  json.RawMessage
		Settings struct {
			Model     string
			MaxTokens int64           `json:"max_tokens"`
			Budget    int64           `json:"thinking_budget_tokens"`
			ExtraBody json.RawMessage `json:"extra_body"`
		}
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		t.Fatal(err)
	}
	policy := rewrite.DefaultPolicy()
	policy.DefaultMaxTokens, policy.ThinkingBudgetTokens, policy.ExtraBody = in.Settings.MaxTokens, in.Settings.Budget, canon.Raw(in.Settings.ExtraBody)
	if err := policy.Validate(); err != nil {
		return outcome(t, c.Output, nil, canon.Invalid("settings", err.Error()), nil)
	}
	tr := rewrite.NewTranslation(translator(t, canon.Responses), translator(t, canon.Messages), &policy, rewrite.Call{ID: "1", Served: func(string) string { return in.Settings.Model }})
	body, err := tr.Request(in.Request)
	return outcome(t, c.Output, body, err, tidyRequest)
}

func answerBetween(client, upstream canon.Dialect) func(*testing.T, gymCase) []string {
	return func(t *testing.T, c gymCase) []string {
		tr := asGym(t, client, upstream)
		if _, err := tr.Request(askedOfGym(client, false)); err != nil {
			t.Fatal(err)
		}
		body, err := tr.Answer(c.Input)
		return outcome(t, c.Output, body, err, tidyAnswer)
	}
}
