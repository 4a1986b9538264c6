package gemini

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"rolltap/rewrite/canon"
)

// A seal goes through clients for whom a signature is bytes: they decode it, and encode it in their own way.
func TestSealsAreBytes(t *testing.T) {
	for _, seal := range []string{"rolltap1c_HRtJrcJqdakAAlQA", "rolltap1k_-_", "rolltap1c_a"} {
		written := `"` + string(appendSignature(nil, canon.Text(seal))) + `"`
		var typed []byte
		if err := json.Unmarshal([]byte(written), &typed); err != nil || string(typed) != seal {
			t.Errorf("%s: a typed client reads %q, %v in %s", seal, typed, err, written)
		}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if got := readSignature(canon.Text(e.EncodeToString(typed))); string(got) != seal {
				t.Errorf("%s comes back as %s", seal, got)
			}
		}
		if got := readSignature(canon.Text(seal)); string(got) != seal {
			t.Errorf("%s as a text comes back as %s", seal, got)
		}
	}
}

// Google's own are bytes already, and what is no seal stays what it is.
func TestOtherSignaturesAreAsTheyCame(t *testing.T) {
	for _, text := range []string{"", "CpoBAVKRGu3+/w==", "S1", `cm9sbHRhcD`, "cm9sbHRhcDE*", "cm9sbHRhcDMx", base64.StdEncoding.EncodeToString([]byte("rolltap1c_\"")),
		base64.StdEncoding.EncodeToString([]byte("rolltap1c_\x00"))} {
		if got := readSignature(canon.Text(text)); string(got) != text {
			t.Errorf("%q is read as %q", text, got)
		}
		if got := appendSignature(nil, canon.Text(text)); string(got) != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}
