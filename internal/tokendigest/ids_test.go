package tokendigest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestSum(t *testing.T) {
	type golden struct {
		IDs, Digest string
		Prefixes    []string // of the first 0, 97, 194, … ids
	}
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
		t.Fatalf("%d lists, %v", len(all), err)
	}
	for _, g := range all {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(g.IDs), &list); err != nil {
			t.Fatal(err)
		}
		tight := strings.ReplaceAll(g.IDs, " ", "")
		for _, spelled := range []string{g.IDs, tight, tight[1 : len(tight)-1], " [ " + strings.ReplaceAll(tight[1:len(tight)-1], ",", " ,\n\t") + " ] "} {
			digest, n, err := Sum([]byte(spelled))
			if err != nil || n != len(list) || digest != g.Digest {
				t.Errorf("%.60q: %s of %d, %v; want %s of %d", spelled, digest, n, err, g.Digest, len(list))
			}
			for i, want := range g.Prefixes {
				if digest, err := Prefix([]byte(spelled), i*97); err != nil || digest != want {
					t.Errorf("%.60q: the first %d: %s, %v; want %s", spelled, i*97, digest, err, want)
				}
			}
		}
		// Cut anywhere, the two parts have the digest of the whole, and the suffix is the second part.
		for n := 0; n <= len(list); n += 1 + len(list)/7 {
			suffix, err := Suffix([]byte(g.IDs), n)
			if err != nil {
				t.Errorf("%.60q: suffix behind %d: %v", g.IDs, n, err)
				continue
			}
			var behind []json.RawMessage
			if err := json.Unmarshal(suffix, &behind); err != nil || fmt.Sprintf("%s", behind) != fmt.Sprintf("%s", list[n:]) {
				t.Errorf("%.60q: behind %d is %.60q, %v", g.IDs, n, suffix, err)
			}
			first, err := json.Marshal(list[:n])
			if err != nil {
				t.Fatal(err)
			}
			if digest, total, err := Sum(first, nil, suffix, []byte("[]")); err != nil || total != len(list) || digest != g.Digest {
				t.Errorf("%.60q: in two parts at %d: %s, %v", g.IDs, n, digest, err)
			}
		}
	}
	if digest, n, err := Sum(); digest != all[0].Digest || n != 0 || err != nil {
		t.Errorf("no lists: %s, %d, %v", digest, n, err)
	}
}

func TestBadTokens(t *testing.T) {
	good := []byte("[1,2,3]")
	for _, list := range []string{
		"[", "]", "[1", "1]", "[1,]", "[,1]", "[1,,2]", "1,", ",", "[1 2]", "[-1]", "[1.0]", "[1e3]", "[01]", "[00]", `["1"]`, "[[1]]", "[1],[2]", "[null]", "null", "{}",
		"[18446744073709551616]", "[99999999999999999999]", "[19999999999999999999]", "[100000000000000000000]", "[1,\x002]", "[+1]", "[1;2]", "\ufeff[1]", "[١]",
	} {
		if n, err := Count([]byte(list)); !errors.Is(err, ErrTokens) {
			t.Errorf("%q: %d ids, %v", list, n, err)
		}
		if digest, n, err := Sum(good, []byte(list)); !errors.Is(err, ErrTokens) || digest != "" || n != 0 {
			t.Errorf("%q: %q of %d, %v", list, digest, n, err)
		}
		if out, err := Suffix([]byte(list), 0); !errors.Is(err, ErrTokens) || out != nil {
			t.Errorf("%q: suffix %q, %v", list, out, err)
		}
		if digest, err := Prefix([]byte(list), strings.Count(list, ",")+1); !errors.Is(err, ErrTokens) || digest != "" {
			t.Errorf("%q: prefix %q, %v", list, digest, err)
		}
	}
	for _, n := range []int{-1, 4, 1 << 40} {
		if _, err := Prefix(good, n); !errors.Is(err, ErrShort) {
			t.Errorf("first %d of three: %v", n, err)
		}
		if _, err := Suffix(good, n); !errors.Is(err, ErrShort) {
			t.Errorf("behind %d of three: %v", n, err)
		}
	}
}

func TestHash(t *testing.T) {
	h := New(3)
	for _, text := range []string{"1", "2", "3"} {
		id, ok := ID([]byte(text))
		if !ok {
			t.Errorf("%s is no id", text)
		}
		h.Add(id)
	}
	// The golden value of the reference (capture.md 5.9).
	if digest, ok := h.Hex(); !ok || digest != "bf99633051449f0f3248b4995a7c8468b9561d7732447341916085f12ff9ff54" {
		t.Errorf("%s, %t", digest, ok)
	}
	if _, ok := New(1).Hex(); ok {
		t.Error("an id is missing, and nobody said so")
	}
	for _, text := range []string{"", "-1", "01", "1.0", " 1", "1 ", "18446744073709551616", "1e3", "[1]"} {
		if id, ok := ID([]byte(text)); ok {
			t.Errorf("%q is the id %d", text, id)
		}
	}
	if id, ok := ID([]byte("18446744073709551615")); !ok || id != 1<<64-1 {
		t.Errorf("%d, %t", id, ok)
	}
}
