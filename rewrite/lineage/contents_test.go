package lineage

import "testing"

// A call of Gemini is found again by what its client sends back, whatever it makes of chunks, ids, thoughts and signatures; and by nothing else.
func TestContents(t *testing.T) {
	const user = `{"role":"user","parts":[{"text":"a"},{"inline_data":{"mime_type":"image/png","data":"AA"}}]}`
	body := func(contents string) string {
		return `{"systemInstruction":{"parts":[{"text":"S"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}],"contents":[` + contents + `]}`
	}
	const answer = `{"candidates":[{"content":{"role":"model","parts":[{"text":"T","thought":true},{"text":"said","thoughtSignature":"S"},{"functionCall":{"id":"c","name":"f","args":{"x":1, "y":"é"}}}]},"finishReason":"STOP"}]}`
	const result = `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"R"}}}]}`
	first := read(t, body(user))
	if got := Resolve(first, nil); got.Resolution != Root || first.Len() != 2 {
		t.Fatalf("%+v, %d turns", got, first.Len())
	}
	stamp, err := first.Stamp([]byte(answer))
	if err != nil || stamp.Fingerprint == "" {
		t.Fatalf("%+v, %v", stamp, err)
	}
	for _, c := range []struct{ name, contents, want string }{
		{"as it was", user + `,{"role":"model","parts":[{"text":"T","thought":true},{"text":"said","thoughtSignature":"S"},{"functionCall":{"id":"c","name":"f","args":{"x":1, "y":"é"}}}]},` + result, Resolved},
		{"no thoughts, no ids, arguments written anew", user + `,{"role":"model","parts":[{"text":"said"},{"functionCall":{"name":"f","args":{"y":"\u00e9","x":1}}}]},` + result, Resolved},
		{"in the pieces of a stream", user + `,{"role":"model","parts":[{"text":"sa"}]},{"role":"model","parts":[{"text":"id"},{"text":"","thoughtSignature":"S"}]},{"role":"model","parts":[{"function_call":{"name":"f","args":{"x":1,"y":"é"}}}]},` + result, Resolved},
		{"another text", user + `,{"role":"model","parts":[{"text":"sad"},{"functionCall":{"name":"f","args":{"x":1,"y":"é"}}}]},` + result, Unresolved},
		{"other arguments", user + `,{"role":"model","parts":[{"text":"said"},{"functionCall":{"name":"f","args":{"x":2,"y":"é"}}}]},` + result, Unresolved},
		{"another question", `{"role":"user","parts":[{"text":"b"}]},{"role":"model","parts":[{"text":"said"},{"functionCall":{"name":"f","args":{"x":1,"y":"é"}}}]},` + result, Unresolved},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Resolve(read(t, body(c.contents)), func(f string) ([]Candidate, error) {
				if f != stamp.Fingerprint {
					return nil, nil
				}
				return []Candidate{{"a", stamp, 3, "d"}}, nil
			})
			if got.Resolution != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
	for _, bad := range []string{`1`, `{"parts":7}`, `{"role":"model","parts":[1]}`} {
		if turns, err := Read([]byte(body(bad))); err == nil {
			t.Errorf("%s is read: %d turns", bad, turns.Len())
		}
	}
	for _, other := range []string{`{"messages":[],"contents":[` + user + `]}`, `{"input":"x","contents":[` + user + `]}`, `{"instructions":"x","contents":[` + user + `]}`} {
		turns, err := Read([]byte(other))
		if err != nil || turns.Len() > 1 {
			t.Errorf("what another dialect says is its own: %s, %v", other, err)
		}
	}
}
