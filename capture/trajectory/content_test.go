package trajectory

import (
	"reflect"
	"testing"
)

func TestContentsAreRead(t *testing.T) {
	got := RequestItems("gemini", []byte(`{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
		{"role":"model","parts":[{"text":"T","thought":true},{"text":"b"}]},{"role":"model","parts":[{"text":"c"},{"functionCall":{"id":"x","name":"f","args":{"k":1}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":"R"}}},{"functionResponse":{"name":"g","response":{"error":"E"}}},{"functionResponse":{"name":"h","response":{"a":1}}}]},
		{"role":"model","parts":[{"executableCode":{"code":"1"}},{},7]},"odd"]}`))
	for i := range got {
		got[i].Raw = nil
	}
	want := []Item{
		{Role: "system", Text: "S"}, {Role: "user", Text: "a"}, {Role: "user", Kind: Attached, Text: "image/png, 3 B"},
		{Role: "assistant", Kind: Thought, Text: "T"}, {Role: "assistant", Text: "bc"}, {Role: "assistant", Kind: Called, ID: "x", Name: "f", Text: `{"k":1}`},
		{Role: "tool", Kind: Returned, ID: "x", Name: "f", Text: "R"}, {Role: "tool", Kind: Returned, Name: "g", Text: "E", Bad: true}, {Role: "tool", Kind: Returned, Name: "h", Text: `{"a":1}`},
		{Role: "assistant", Kind: Strange, Text: "executableCode"}, {Text: "odd"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	answer := ResponseItems("gemini", []byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"},{"text":"b"}]}}]}`))
	if !reflect.DeepEqual(answer, []Item{{Role: "assistant", Text: "ab"}}) {
		t.Errorf("the answer is %+v", answer)
	}
	tools := string(appendTools(nil, "gemini", []byte(`[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object"}}]},{"googleSearch":{}}]`), func(string) {}))
	if tools != `[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]` {
		t.Errorf("the tools are %s", tools)
	}
}
