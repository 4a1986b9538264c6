package lineage

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"rolltap/internal/jsonx"
)

// FuzzRead: no body makes Read or Stamp panic, and white space makes no difference.
func FuzzRead(f *testing.F) {
	for _, b := range clients(f) {
		f.Add(b)
	}
	for _, r := range load[request](f, "made/requests.json") {
		f.Add([]byte(r.Body))
	}
	for _, calls := range conversations {
		for _, c := range calls {
			f.Add([]byte(c.answer))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		turns, err := Read(body)
		if err != nil {
			return
		}
		stamp, errStamp := turns.Stamp(body)
		if !jsonx.Valid(body) {
			return
		}
		tight := jsonx.AppendCompact(nil, body)
		again, err := Read(tight)
		if err != nil {
			t.Fatalf("%v without white space", err)
		}
		if again.Fingerprint() != turns.Fingerprint() || again.Len() != turns.Len() {
			t.Fatal("another fingerprint without white space")
		}
		for n := range turns.Len() + 1 {
			if turns.Digest(n) != again.Digest(n) {
				t.Fatalf("another digest of %d turns without white space", n)
			}
		}
		if s, err := again.Stamp(tight); s != stamp || (err == nil) != (errStamp == nil) {
			t.Fatalf("%v, %v without white space, %v, %v with", s, err, stamp, errStamp)
		}
	})
}

// FuzzCanonical: canonical JSON of valid JSON is valid, and that of canonical JSON is itself.
func FuzzCanonical(f *testing.F) {
	for _, v := range load[struct{ Text string }](f, "made/values.json") {
		f.Add([]byte(v.Text))
	}
	for _, b := range clients(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c canonical
		out, ok := c.append(nil, text, compact, false)
		if !utf8.Valid(text) {
			return
		}
		if !ok {
			if jsonx.Valid(text) && !longInteger(text) {
				t.Fatalf("%q is JSON", text)
			}
			return
		}
		if !jsonx.Valid(out) {
			t.Fatalf("%q becomes %q", text, out)
		}
		if again, ok := c.append(nil, out, compact, false); !ok || !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q", out, again)
		}
		ascii, _ := c.append(nil, text, spaced, false)
		for _, b := range ascii {
			if b < ' ' || b > '~' {
				t.Fatalf("%q has %q", ascii, b)
			}
		}
		if again, ok := c.append(nil, ascii, spaced, false); !ok || !bytes.Equal(again, ascii) {
			t.Fatalf("%q becomes %q", ascii, again)
		}
		// Both say the same.
		if again, ok := c.append(nil, ascii, compact, false); !ok || !bytes.Equal(again, out) {
			t.Fatalf("%q and %q", again, out)
		}
	})
}

// longInteger reports whether there may be an integer in text that is too long for Python.
func longInteger(text []byte) bool {
	n := 0
	for _, b := range text {
		if n++; b < '0' || b > '9' {
			n = 0
		}
		if n > maxDigits {
			return true
		}
	}
	return false
}
