package chat

import "testing"

func TestIsError(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"m"}}`: true, `{"error":"m"}`: true, `{"object":"error","message":"m"}`: true, `{"detail":"m"}`: true,
		`{"error":null,"choices":[]}`: false, `{"choices":[],"detail":"m"}`: false, `{"id":"c","object":"chat.completion","choices":[]}`: false, `{}`: false,
	} {
		if got := (chat{}).IsError([]byte(body)); got != want {
			t.Errorf("%s: got %v", body, got)
		}
	}
}
