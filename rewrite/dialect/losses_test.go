package dialect

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

func TestLoseRest(t *testing.T) {
	place := func(at string, name []byte) (canon.Reason, string) {
		switch at + "." + string(name) {
		case "u.in", "u.d.in":
			return "", ""
		case "u.d":
			return "", "u.d"
		case "u.known":
			return canon.NoEquivalent, ""
		}
		return canon.NotKnown, ""
	}
	long := strings.Repeat("x", 63) + "é"
	for _, c := range []struct{ object, want string }{
		{``, ""},
		{`null`, ""},
		{`{}`, ""},
		{`3`, "u unknown"},
		{`{"in":1,"d":{"in":2},"known":0,"x":null,"y":false,"z":[],"w":{},"v":0.0,"q":""}`, ""},
		{`{"known":1,"x":{"y":0},"d":{"in":1,"x":true,"known":3}}`, "u.known no_equivalent,u.x unknown,u.d.x unknown,u.d.known unknown"},
		{`{"d":[1]}`, "u.d unknown"},
		{`{"i\u006e":1,"\u0064":{"i\u006e":1,"\n":1},"":1}`, "u.d.\n unknown,u.unknown unknown"},
		{`{"` + long + `":1}`, "u." + strings.Repeat("x", 63) + " unknown"},
	} {
		var losses canon.Losses
		LoseRest([]byte(c.object), "u", place, &losses)
		var got []string
		for _, l := range losses.List() {
			got = append(got, fmt.Sprint(l.Path, " ", l.Reason))
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: lost %q, want %q", c.object, got, c.want)
		}
	}
}
