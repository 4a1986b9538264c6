package proxy

import (
	"testing"
	"time"
)

func TestKeep_spelling(t *testing.T) {
	for text, want := range map[string]Keep{
		"off": {}, "168h": {Age: 168 * time.Hour}, "50GiB": {Bytes: 50 << 30}, "1024": {Bytes: 1024},
		"168h,50GiB": {Age: 168 * time.Hour, Bytes: 50 << 30}, " 1MiB , 90m ": {Age: 90 * time.Minute, Bytes: 1 << 20},
	} {
		var got Keep
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		var again Keep
		if err := again.UnmarshalText([]byte(want.String())); err != nil || again != want {
			t.Errorf("%q is written %q, which is %v, %v", text, want, again, err)
		}
	}
	for _, text := range []string{"", "0", "0s", "-1h", "-5", "7d", "1h,2h", "1KiB,2KiB", "1h,1KiB,1h", "off,1h", "1h,", "a"} {
		var got Keep
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestFileMode_spelling(t *testing.T) {
	for text, want := range map[string]FileMode{"0640": 0o640, "600": 0o600, "0o660": 0o660, "0644": 0o644} {
		var got FileMode
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0440", "0666", "0750", "0602", "640x", "1640", "888", "-0640"} {
		var got FileMode
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
