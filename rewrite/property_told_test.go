package rewrite_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest/generate"
)

// A member that nobody knows, in any object of an answer but its counts, is told as lost, whether the answer comes whole or as a stream.
func TestAnyMemberOfAnAnswerIsTold(t *testing.T) {
	for _, up := range upstreams() {
		for _, client := range dialects(t) {
			t.Run(string(up)+" to "+string(client.Name()), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					tb := property{t, rt}
					body := string(generate.Said(rt, up).Unary)
					for _, at := range objects(body) {
						planted := body[:at] + `"x_newer":1,` + body[at:]
						tr := asking(tb, client.Name(), up, false)
						if _, err := tr.Answer([]byte(planted)); err != nil {
							rt.Fatalf("%v\n%s", err, planted)
						}
						told(rt, tr, planted)
						live := asking(tb, client.Name(), up, true)
						if _, err := live.NewStream(0).Whole([]byte(planted)); err != nil {
							rt.Fatalf("%v\n%s", err, planted)
						}
						told(rt, live, planted)
					}
				})
			})
		}
	}
}

func told(t *rapid.T, tr *rewrite.Translation, planted string) {
	t.Helper()
	for _, l := range tr.Losses() {
		if strings.HasSuffix(l.Path, "x_newer") && l.Reason == canon.NotKnown {
			return
		}
	}
	t.Fatalf("nothing is told of x_newer\n%s\n%v", planted, tr.Losses())
}

// objects are the places behind the braces of objects that have members, but those of counts, of what a tool is called with and of what is lost whole.
func objects(body string) (places []int) {
	for at := range body {
		if body[at] != '{' || body[at+1] != '"' {
			continue
		}
		before, behind := body[:at], body[at:]
		if strings.HasPrefix(behind, `{"type":"redacted_thinking"`) {
			continue
		}
		inside := false // of one of those
		for _, name := range []string{`"usage":`, `"incomplete_details":`, `"input":`} {
			from := strings.LastIndex(before, name)
			inside = inside || from >= 0 && strings.Count(body[from:at], "{") >= strings.Count(body[from:at], "}")
		}
		if !inside && (at == 0 || strings.ContainsAny(body[at-1:at], ":[,")) {
			places = append(places, at+1)
		}
	}
	return places
}
