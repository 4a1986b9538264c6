package responses

import "testing"

func TestIsError(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"m"}}`:                                    true,
		`{"error":"Unauthorized"}`:                                     true,
		`{"object":"error","message":"m"}`:                             true,
		`{"type":"error","error":{}}`:                                  true,
		`{"detail":"Not Found"}`:                                       true,
		`{"object":"response","status":"failed","error":{"code":"x"}}`: false,
		`{"object":"response","status":"completed","error":null}`:      false,
		`{"output":[],"error":null}`:                                   false,
		`{}`:                                                           false,
	} {
		if got := (responses{}).IsError([]byte(body)); got != want {
			t.Errorf("%s: got %v", body, got)
		}
	}
}
