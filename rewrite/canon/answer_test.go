package canon

import (
	"math"
	"testing"
)

func TestTheTotalIsTheToldOneElseTheSumWithinItsRange(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		usage       Usage
		told, inAll int64
	}{
		{Usage{Prompt: 11, Completion: 5}, 19, 19},
		{Usage{Prompt: 11, Completion: 5}, 16, 16},
		{Usage{Prompt: 11, Completion: 5}, Unknown, 16},
		{Usage{Prompt: 11, Completion: 5}, 0, 16},
		{Usage{Prompt: 11, Completion: Unknown}, Unknown, 11},
		{Usage{Prompt: most, Completion: most}, Unknown, most},
		{Usage{Prompt: 1, Completion: most}, Unknown, most},
		{Usage{Prompt: most, Completion: Unknown}, Unknown, most},
		{NoUsage(), 7, 0},
	} {
		u := c.usage.WithTotal(c.told)
		if got := u.InAll(); got != c.inAll {
			t.Errorf("%+v of which %d was told: %d in all, want %d", c.usage, c.told, got, c.inAll)
		}
		if differs := c.inAll != c.usage.InAll(); (u != c.usage) != differs {
			t.Errorf("%+v of which %d was told became %+v", c.usage, c.told, u)
		}
	}
}

func TestBlankIsWhiteSpaceOfJSON(t *testing.T) {
	for text, want := range map[string]bool{"": true, " ": true, `\n \t\r`: true, `\u0020\u000A\u000d`: true, "a": false, ` {`: false, `\f`: false, `\\n`: false,
		`\u0041`: false, `\u00a0`: false, `\u00`: false, `\`: false} {
		if got := Text(text).Blank(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
