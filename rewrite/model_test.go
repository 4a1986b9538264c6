package rewrite_test

import (
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// Who names no model is told what the upstream calls the one that answered; who names one is told that.
func TestWhoNamesNoModelIsToldTheUpstreams(t *testing.T) {
	const answer = `{"id":"i","model":"served","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`
	said := map[canon.Dialect]string{
		canon.Chat:      `{"id":"m","type":"message","role":"assistant","model":"served","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`,
		canon.Messages:  answer,
		canon.Responses: answer,
	}
	bodies := map[canon.Dialect]string{
		canon.Chat:      `"messages":[{"role":"user","content":"x"}]`,
		canon.Messages:  `"max_tokens":9,"messages":[{"role":"user","content":"x"}]`,
		canon.Responses: `"input":"x"`,
	}
	for client, body := range bodies {
		up := canon.Chat
		if client == canon.Chat {
			up = canon.Messages
		}
		for asked, want := range map[string]string{``: "served", `"model":"",`: "served", `"model":null,`: "served", `"model":"named",`: "named"} {
			for _, stream := range []bool{false, true} {
				tr := between(t, client, up)
				request := []byte("{" + asked + body + "}")
				if stream {
					request = rewrite.SetMember(request, "stream", []byte("true"))
				}
				if _, err := tr.Request(request); err != nil {
					t.Fatal(err)
				}
				var got []byte
				var err error
				if stream {
					s := tr.NewStream(0)
					if client == canon.Responses {
						s.KeepAlive() // opens the stream, and knows no model yet: later events do
					}
					got, err = s.Whole([]byte(said[client]))
				} else {
					got, err = tr.Answer([]byte(said[client]))
				}
				if err != nil || !strings.Contains(string(got), `"model":"`+want+`"`) || strings.Contains(string(got), `"model":""`) {
					t.Errorf("%s, %q, stream %v: %v, no %s in %s", client, asked, stream, err, want, got)
				}
			}
		}
	}
}
