package rewrite

import (
	"fmt"
	"testing"
)

func TestRenamerTouchesNothingElse(t *testing.T) {
	r := NewRenamer([]byte(`"asked é"`))
	for name, c := range map[string]struct{ in, want string }{
		"the name":                 {`{"a":{"model":"served"}, "model" : "served","f":1.50}`, `{"a":{"model":"served"}, "model" : "asked é","f":1.50}`},
		"inside a message":         {`{"type":"message_start","message":{"id":"x","model":"served"}}`, `{"type":"message_start","message":{"id":"x","model":"asked é"}}`},
		"inside a response":        {`{"response":{"model":"served","metadata":{"model":"served"}}}`, `{"response":{"model":"asked é","metadata":{"model":"served"}}}`},
		"twice":                    {`{"model":"a","model":"b"}`, `{"model":"asked é","model":"asked é"}`},
		"no name":                  {`{"model":null,"n":1}`, `{"model":null,"n":1}`},
		"no object":                {`["model"]`, `["model"]`},
		"no JSON":                  {`{"model":"served"`, `{"model":"served"`},
		"a message that is a text": {`{"message":"model"}`, `{"message":"model"}`},
		"white space around":       {" {\"model\":\"served\"} ", " {\"model\":\"asked é\"} "},
	} {
		t.Run(name, func(t *testing.T) {
			padded := append(append(make([]byte, 0, len(c.in)+100), "<"...), c.in...)
			if got := string(r.AppendWhole(nil, padded[1:])); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRenamerStreamAnySplit(t *testing.T) {
	in := "\ufeff: model\r\nevent: x\ndata: {\"model\":\"served\"}\n\ndata:{\"choices\":[{\"model\":\"served\"}],\"model\":\"served\"}\r\n\r\ndata: [DONE]\n\ndata: {\"model\":\"served\"}"
	want := "\ufeff: model\r\nevent: x\ndata: {\"model\":\"m\"}\n\ndata:{\"choices\":[{\"model\":\"served\"}],\"model\":\"m\"}\r\n\r\ndata: [DONE]\n\ndata: {\"model\":\"m\"}"
	for size := 1; size <= len(in); size++ {
		r := NewRenamer([]byte(`"m"`))
		var got []byte
		for at := 0; at < len(in); at += size {
			got = r.AppendStream(got, []byte(in[at:min(at+size, len(in))]))
		}
		if got = r.AppendRest(got); string(got) != want {
			t.Fatalf("pieces of %d: %q", size, got)
		}
	}
}

func TestRenamerLongLine(t *testing.T) {
	r := NewRenamer([]byte(`"m"`))
	long := fmt.Sprintf(`data: {"x":"%01000d","model":"served"}`, 0)
	var got, want []byte
	for range maxRenamed/len(long) + 2 {
		got = r.AppendStream(got, []byte(long))
		want = append(want, long...)
	}
	got = r.AppendStream(got, []byte("\ndata: {\"model\":\"served\"}\n"))
	want = append(want, "\ndata: {\"model\":\"m\"}\n"...)
	if string(got) != string(want) {
		t.Errorf("%d bytes became %d, and end in %q", len(want), len(got), got[len(got)-40:])
	}
}
