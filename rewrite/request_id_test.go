package rewrite_test

import (
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// Errors of Messages name the request (dialects.md 1.15.2), by the id that the exchange has everywhere; events of a stream do not.
func TestErrorsOfMessagesNameTheRequest(t *testing.T) {
	p := &canon.Problem{Status: 500, Message: "m"}
	for client, want := range map[canon.Dialect]string{
		canon.Messages:  `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"req_1"}`,
		canon.Chat:      `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`,
		canon.Responses: `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`,
	} {
		up := canon.Chat
		if client == canon.Chat {
			up = canon.Messages
		}
		if got := string(asking(t, client, up, false).AppendProblem(nil, p)); got != want {
			t.Errorf("%s: %s; want %s", client, got, want)
		}
		s := asking(t, client, up, true).NewStream(0)
		s.KeepAlive()
		if got := string(s.Fail(p)); got == "" || strings.Contains(got, "request_id") {
			t.Errorf("%s, in a stream: %s", client, got)
		}
	}
}
