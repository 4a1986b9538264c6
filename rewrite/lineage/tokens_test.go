package lineage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenDigest(t *testing.T) {
	type golden struct {
		IDs, Digest string
		Prefixes    []string // of the first 0, 97, 194, … ids
	}
	all := load[golden](t, "made/tokens.json")
	for _, g := range all {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(g.IDs), &list); err != nil {
			t.Fatal(err)
		}
		tight := strings.ReplaceAll(g.IDs, " ", "")
		for _, spelled := range []string{g.IDs, tight, tight[1 : len(tight)-1], " [ " + strings.ReplaceAll(tight[1:len(tight)-1], ",", " ,\n\t") + " ] "} {
			digest, n, err := TokenDigest([]byte(spelled))
			if err != nil || n != len(list) || digest != g.Digest {
				t.Errorf("%.60q: %s of %d, %v; want %s of %d", spelled, digest, n, err, g.Digest, len(list))
			}
			for i, want := range g.Prefixes {
				if digest, err := PrefixDigest([]byte(spelled), i*97); err != nil || digest != want {
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
			if digest, total, err := TokenDigest(first, nil, suffix, []byte("[]")); err != nil || total != len(list) || digest != g.Digest {
				t.Errorf("%.60q: in two parts at %d: %s, %v", g.IDs, n, digest, err)
			}
		}
	}
	if digest, n, err := TokenDigest(); digest != all[0].Digest || n != 0 || err != nil {
		t.Errorf("no lists: %s, %d, %v", digest, n, err)
	}
}

func TestBadTokens(t *testing.T) {
	good := []byte("[1,2,3]")
	for _, list := range []string{
		"[", "]", "[1", "1]", "[1,]", "[,1]", "[1,,2]", "1,", ",", "[1 2]", "[-1]", "[1.0]", "[1e3]", "[01]", "[00]", `["1"]`, "[[1]]", "[1],[2]", "[null]", "null", "{}",
		"[18446744073709551616]", "[99999999999999999999]", "[19999999999999999999]", "[100000000000000000000]", "[1,\x002]", "[+1]", "[1;2]", "\ufeff[1]", "[١]",
	} {
		if digest, n, err := TokenDigest(good, []byte(list)); !errors.Is(err, ErrTokens) || digest != "" || n != 0 {
			t.Errorf("%q: %q of %d, %v", list, digest, n, err)
		}
		if out, err := Suffix([]byte(list), 0); !errors.Is(err, ErrTokens) || out != nil {
			t.Errorf("%q: suffix %q, %v", list, out, err)
		}
		if digest, err := PrefixDigest([]byte(list), strings.Count(list, ",")+1); !errors.Is(err, ErrTokens) || digest != "" {
			t.Errorf("%q: prefix %q, %v", list, digest, err)
		}
	}
	for _, n := range []int{-1, 4, 1 << 40} {
		if _, err := PrefixDigest(good, n); !errors.Is(err, ErrShort) {
			t.Errorf("first %d of three: %v", n, err)
		}
		if _, err := Suffix(good, n); !errors.Is(err, ErrShort) {
			t.Errorf("behind %d of three: %v", n, err)
		}
	}
}

// entry is a line of a token store.
type entry struct {
	ID          string          `json:"model_call_id"`
	Prompt      json.RawMessage `json:"prompt_token_ids"`
	Generation  json.RawMessage `json:"generation_token_ids"`
	CumLen      int             `json:"cum_len"`
	Digest      string          `json:"digest"`
	Resolution  string          `json:"parent_resolution"`
	Parent      string          `json:"parent_call_id"`
	Fingerprint string          `json:"continuation_fingerprint"`
	ContextLen  int             `json:"continuation_context_len"`
	Context     string          `json:"continuation_context_digest"`
	Version     int             `json:"fingerprint_version"`
}

func (e entry) candidate() Candidate {
	return Candidate{e.ID, Stamp{e.Fingerprint, e.ContextLen, e.Context}, e.CumLen, e.Digest}
}

func entries(t testing.TB, name string) []entry {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []entry
	for s := bufio.NewScanner(f); s.Scan(); {
		var e entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

// TestStores goes over stores that Gym wrote: every entry has the digest of its tokens, and a child that names its parent begins
// with the parent's tokens, save the one that was made not to.
func TestStores(t *testing.T) {
	names, err := filepath.Glob("testdata/tokens/*.jsonl")
	if err != nil || len(names) < 5 {
		t.Fatalf("%v, %v", names, err)
	}
	links := 0
	for _, name := range names {
		all := map[string]entry{}
		for _, e := range entries(t, name) {
			digest, n, err := TokenDigest(e.Prompt, e.Generation)
			if err != nil || digest != e.Digest || n != e.CumLen {
				t.Errorf("%s %s: %s of %d, %v; Gym has %s of %d", name, e.ID, digest, n, err, e.Digest, e.CumLen)
			}
			if e.Version != FingerprintVersion {
				t.Errorf("%s %s: version %d", name, e.ID, e.Version)
			}
			all[e.ID] = e
		}
		for _, e := range all {
			parent, ok := all[e.Parent]
			if e.Resolution != Resolved || !ok {
				continue
			}
			links++
			digest, err := PrefixDigest(e.Prompt, parent.CumLen)
			if proven := err == nil && digest == parent.Digest; proven == strings.Contains(name, "digest-mismatch") {
				t.Errorf("%s: %s continues %s is %t, %v", name, e.ID, parent.ID, proven, err)
			}
			if suffix, err := Suffix(e.Prompt, parent.CumLen); err != nil || !bytes.HasSuffix(e.Prompt, suffix[1:]) {
				t.Errorf("%s: %s has the suffix %s, %v", name, e.ID, suffix, err)
			}
		}
	}
	if links < 5 {
		t.Errorf("only %d links were looked at", links)
	}
}
