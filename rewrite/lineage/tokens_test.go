package lineage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/tokendigest"
)

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
			digest, n, err := tokendigest.Sum(e.Prompt, e.Generation)
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
