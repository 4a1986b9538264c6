package jsonx

import (
	"strings"
	"testing"
)

func TestValueEnd(t *testing.T) {
	for _, tc := range validCases {
		t.Run(tc.name, func(t *testing.T) {
			value := strings.Trim(tc.in, " \t\r\n")
			for _, behind := range []string{"", ",", "]", "} x", " ", "\n\"", "\x80"} {
				in := []byte("[" + value + behind)
				if got := ValueEnd(in, 1, 0); got != 1+len(value) {
					t.Errorf("before %q: got %d, want %d", behind, got, 1+len(value))
				}
			}
		})
	}
	for _, tc := range invalidCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := ValueEnd([]byte(tc.in), 0, 0); got > len(tc.in) || got >= 0 && !Valid([]byte(tc.in)[:got]) {
				t.Errorf("got %d", got)
			}
		})
	}
	for _, tc := range brokenCases {
		t.Run(tc.name, func(t *testing.T) {
			for i := range len(tc.in) + 2 {
				ValueEnd([]byte(tc.in), i, 0)
			}
		})
	}
}

func TestValueEndCountsWhatIsAround(t *testing.T) {
	for _, c := range []struct {
		in    string
		depth int
		want  int
	}{
		{"[[]]", MaxDepth - 2, 4}, {"[[]]", MaxDepth - 1, -1}, {`{"a":{}}`, MaxDepth - 2, 8}, {`{"a":{}}`, MaxDepth - 1, -1},
		{"[]", MaxDepth, -1}, {"{}", MaxDepth + 1, -1}, {`"a"`, MaxDepth, 3}, {"12", MaxDepth + 1, 2}, {"1", -1, -1}, {"", 0, -1}, {" 1", 0, -1},
	} {
		if got := ValueEnd([]byte(c.in), 0, c.depth); got != c.want {
			t.Errorf("%s inside of %d: got %d, want %d", c.in, c.depth, got, c.want)
		}
	}
	if got := ValueEnd([]byte("1"), -1, 0); got != -1 {
		t.Errorf("in front of the text: got %d", got)
	}
}

func TestValidObject(t *testing.T) {
	for in, want := range map[string]bool{`{}`: true, " {\"a\":1}\n": true, `[]`: false, `"{}"`: false, `{`: false, `{}{}`: false, ``: false, "\ufeff{}": false} {
		if ValidObject([]byte(in)) != want {
			t.Errorf("%q: %t", in, !want)
		}
	}
}
