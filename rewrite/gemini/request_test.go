package gemini

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// sent are bodies that Gemini CLI and the SDK for Go have sent, testdata/requests, and written ones.
func sent(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{
		"snake case": []byte(`{"system_instruction":{"parts":{"text":"S"}},"contents":[{"parts":[{"text":"hi"}]}]}`),
		"everything": []byte(`{"model":"models/m","systemInstruction":{"parts":[{"text":"A"},{"text":"B"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
			{"role":"model","parts":[{"text":"T","thought":true},{"text":"b","thoughtSignature":"S1"},{"functionCall":{"id":"c","name":"f","args":{"x":1}},"thoughtSignature":"S2"},{"text":"","thoughtSignature":"S3"}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"R"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},{"text":"go on"}]},
			{"role":"model","parts":[{"executableCode":{"code":"1"}}]},{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://h/x"}}]}],
			"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"x":{"type":"INTEGER","nullable":true}}},"behavior":"BLOCKING"},{"name":"g"}]},{"googleSearch":{}}],
			"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}},
			"generationConfig":{"temperature":1e0,"topP":0.5,"topK":5,"seed":7,"maxOutputTokens":"9","stopSequences":["x"],"presencePenalty":1,"frequencyPenalty":2,"responseMimeType":"application/json",
			"responseSchema":{"type":"STRING"},"thinkingConfig":{"includeThoughts":true,"thinkingBudget":5,"thinkingLevel":"LOW"},"speechConfig":{}}}`),
	}
	all["snake case"] = []byte(strings.Replace(string(all["snake case"]), `{"text":"S"}}`, `[{"text":"S"}]}`, 1))
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) != 3 {
		tb.Fatalf("recorded requests: %v, %v", files, err)
	}
	for _, file := range files {
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

func TestRequestRoundTrip(t *testing.T) {
	for name, body := range sent(t) {
		t.Run(name, func(t *testing.T) { dialecttest.RequestRoundTrip(t, New(), body) })
	}
}

func FuzzCall(f *testing.F) {
	for _, body := range sent(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		dialecttest.CheckError(t, New(), 502, body)
		names := map[string]bool{}
		if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
			return
		}
		for it := jsonx.Object(body); it.Next(); {
			if name := string(jsonx.Unquoted(it.Key())); names[name] {
				return
			} else {
				names[name] = true
			}
		}
		dialecttest.CheckCall(t, New(), New(), body)
		New().(dialect.Counter).CountedCall(body)
	})
}

// read reads a request, and its losses.
func read(t *testing.T, body string, target dialect.Target) (*canon.Request, []canon.Loss, error) {
	t.Helper()
	policy, losses := dialect.DefaultPolicy(), canon.Losses{}
	r, err := New().ReadCall([]byte(body), dialect.Options{Policy: &policy, Losses: &losses, Target: target})
	return r, losses.List(), err
}

func TestTheTargetSaysModelAndStream(t *testing.T) {
	const contents = `"contents":[{"parts":[{"text":"a"}]}]`
	for _, c := range []struct {
		name, body string
		target     dialect.Target
		model      string
		losses     int
	}{
		{"the path", `{` + contents + `}`, dialect.Target{Model: `a"b`, Stream: true}, `a\"b`, 0},
		{"the body", `{"model":"models/m",` + contents + `}`, dialect.Target{}, "m", 0},
		{"both, the same", `{"model":"models/m",` + contents + `}`, dialect.Target{Model: "m"}, "m", 0},
		{"both, and they differ", `{"model":"models/x",` + contents + `}`, dialect.Target{Model: "m"}, "m", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, losses, err := read(t, c.body, c.target)
			if err != nil || string(r.Model) != c.model || r.Stream != c.target.Stream || len(losses) != c.losses {
				t.Errorf("%v: %+v, %v", err, r, losses)
			}
		})
	}
}

func TestResultsFindTheirCalls(t *testing.T) {
	call := func(members string) string { return `{"functionCall":{` + members + `}}` }
	result := func(members string) string {
		return `{"functionResponse":{` + members + `,"response":{"output":"R"}}}`
	}
	for _, c := range []struct{ name, calls, results, want string }{
		{"by id", call(`"id":"a","name":"f"`) + "," + call(`"id":"b","name":"f"`), result(`"id":"b","name":"f"`) + "," + result(`"id":"a","name":"f"`), "b a"},
		{"by name, in order", call(`"name":"f"`) + "," + call(`"name":"g"`) + "," + call(`"name":"f"`), result(`"name":"g"`) + "," + result(`"name":"f"`) + "," + result(`"name":"f"`), "call_0_1 call_0_0 call_0_2"},
		{"an id of the client's own for a call without one", call(`"name":"f"`), result(`"id":"x","name":"f"`), "call_0_0"},
		{"no id for a call that has one", call(`"id":"a","name":"f"`), result(`"name":"f"`), "a"},
		{"an id of nothing stays", call(`"id":"a","name":"f"`), result(`"id":"z","name":"f"`), "z"},
		{"no name that fits", call(`"id":"a","name":"f"`), result(`"name":"g"`), "refused"},
		{"answered already", call(`"id":"a","name":"f"`), result(`"name":"f"`) + "," + result(`"name":"f"`), "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := read(t, `{"contents":[{"role":"model","parts":[`+c.calls+`]},{"role":"user","parts":[`+c.results+`]}]}`, dialect.Target{})
			got := "refused"
			if err == nil {
				var ids []string
				for _, m := range r.Messages[1:] {
					ids = append(ids, string(m.Parts[0].Result.CallID))
				}
				got = strings.Join(ids, " ")
			}
			if got != c.want {
				t.Errorf("got %s, want %s: %v", got, c.want, err)
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"JSON Schema stays", `{ "type":"object", "properties":{"type":{"type":["string","null"]}} }`, `{ "type":"object", "properties":{"type":{"type":["string","null"]}} }`},
		{"types in capitals", `{"type":"OBJECT","properties":{"type":{"type":"ARRAY","items":{"type":"NUMBER"}}},"required":["type"]}`, `{"type":"object","properties":{"type":{"type":"array","items":{"type":"number"}}},"required":["type"]}`},
		{"nullable", `{"type":"STRING","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`},
		{"nullable alternatives", `{"nullable":true,"anyOf":[{"type":"STRING"},{"type":"integer"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`},
		{"counts in texts", `{"type":"STRING","minLength":"1","maxLength":2}`, `{"type":"string","minLength":1,"maxLength":2}`},
		{"snake case", `{"any_of":[{"type":"STRING","min_length":"1"}],"property_ordering":["a"]}`, `{"anyOf":[{"type":"string","minLength":1}]}`},
		{"values are no schemas", `{"type":"STRING","default":{"type":"OBJECT"},"example":{"nullable":true}}`, `{"type":"string","default":{"type":"OBJECT"},"example":{"nullable":true}}`},
		{"no type", `{"type":"TYPE_UNSPECIFIED"}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in callReader
			got := in.schema([]byte(c.schema))
			if string(got) != c.want || !json.Valid(got) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBytesAreInTheLettersThatOthersKnow(t *testing.T) {
	for in, want := range map[string]string{`"AA+/"`: "AA+/", `"AA-_"`: "AA+/", `"AAA"`: "AAA=", `"AA"`: "AA==", `"AA\/="`: "AA/=", `""`: ""} {
		var r callReader
		if got := r.base64Text([]byte(in), "p"); string(got) != want || r.bad != nil {
			t.Errorf("%s: got %s, want %s, %v", in, got, want, r.bad)
		}
	}
}
