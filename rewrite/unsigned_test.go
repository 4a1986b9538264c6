package rewrite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// Every mix of blocks with and without a signature keeps what has one, in its own bytes.
func TestDropUnsignedKeepsEverythingElse(t *testing.T) {
	const text, signed, bare, empty = `{"type": "text","text":"a\u0041 {,}"}`, `{"type":"thinking","thinking":"t","signature":"s"}`,
		`{"type":"thinking","thinking":"u"}`, `{ "signature" : "", "type":"thinking","thinking":"v"}`
	all := []string{text, signed, bare, empty}
	for n := range 4 * 4 * 4 * 4 {
		var blocks, kept, lost []string
		for i, rest := 0, n; i < 4; i, rest = i+1, rest/4 {
			block := all[rest%4]
			if blocks = append(blocks, block); rest%4 < 2 {
				kept = append(kept, block)
			} else {
				lost = append(lost, fmt.Sprintf("messages[1].content[%d].thinking", i))
			}
		}
		if kept == nil {
			kept = []string{thinkingRemoved}
		}
		make := func(blocks []string) string {
			return `{"n":1.0, "messages":[{"role":"user","content":"hi"} , {"role":"assistant","content": [` + strings.Join(blocks, " , ") + `]},{"role":"user","content":[` + text + `]}],"x":"é"}`
		}
		var l canon.Losses
		body := append(append([]byte{}, make(blocks)...), "rest"...)
		got := dropUnsigned(body[:len(body)-4], &l)
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatalf("%v became %s: %v", blocks, got, err)
		}
		if err := json.Unmarshal([]byte(make(kept)), &b); err != nil {
			t.Fatal(err)
		}
		if x, y := strings.ReplaceAll(string(got), " ", ""), strings.ReplaceAll(make(kept), " ", ""); x != y {
			t.Errorf("%v became %s", blocks, got)
		}
		if len(lost) != len(l.List()) {
			t.Errorf("%v: lost are %v", blocks, l.List())
		}
		for i, loss := range l.List() {
			if loss.Path != lost[i] || loss.Reason != canon.ByPolicy {
				t.Errorf("%v: lost is %v", blocks, loss)
			}
		}
		if len(lost) == 0 && string(got) != make(blocks) {
			t.Errorf("nothing was lost, and %s became %s", make(blocks), got)
		}
	}
}
