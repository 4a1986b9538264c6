package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// TestLinesStayReadable: whatever a large body holds, its line is one that readers accept, and the record says what it lacks.
func TestLinesStayReadable(t *testing.T) {
	for _, c := range []struct {
		name, unit string
		max        int64 // the greatest size of a copy, which the body has
		cut        bool
	}{
		// The least that any text may take is 16 MiB.
		{"NUL", "\x00", 3 << 20, true}, {"quotes", `"`, 9 << 20, true}, {"plain", "plain text ", 2 << 20, false}, {"three bytes", "東", 2 << 20, false},
		{"more than that", "\x00", 14 << 20, true},
		{"the largest", "\x00", defaultCopyMax, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.max > 8<<20 && (raceDetector || testing.Short()) {
				t.Skip("takes long")
			}
			text := []byte(strings.Repeat(c.unit, int(c.max)/len(c.unit)))
			s := newStore(t, Options{})
			r := &Record{Rollout: "r", CallID: callID(), Streamed: true, Response: NewCopy(CopyOptions{Max: c.max})}
			r.Response.Write(text)
			if err := s.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if report, err := Verify(s.o.Dir, func(f Finding) { t.Error(f) }); err != nil || report.Records != 1 {
				t.Errorf("%+v, %v", report, err)
			}
			line, err := os.ReadFile(dataPath(s.o.Dir, "r"))
			if err != nil {
				t.Fatal(err)
			}
			raw := jsonx.Get(line, "response_raw")
			got := jsonx.AppendUnquoted(nil, raw[1:len(raw)-1])
			if !bytes.HasPrefix(text, got) || !c.cut && len(got) != len(text) {
				t.Errorf("%d bytes of text, which begin with %.20q", len(got), got)
			}
			if size, most := len(raw)-2, int(max(16<<20, c.max*5/4)); c.cut && (size > most || size <= most-widest) {
				t.Errorf("cut to %d bytes", size)
			}
			if want := truncatedMember(map[bool]string{true: "response"}[c.cut]); !bytes.HasSuffix(line, []byte(want)) {
				t.Errorf("the line ends with %s, not %s", line[len(line)-50:], want)
			}
		})
	}
}

// TestRoom: all members together leave room for the rest, and what is parsed goes before text. It is about KiB as if they
// were MiB.
func TestRoom(t *testing.T) {
	sized := func(n int) *Copy {
		return body(`{"t":"` + strings.Repeat(`\"`, n/2-4) + `"}`)
	}
	const room = 240 << 10
	for _, c := range []struct {
		request, response, folded int
		policy                    RawPolicy
		truncated                 string
	}{
		{64, 64, 0, RawAlways, "request response"}, // an object each, and text that is twice as long
		{64, 64, 0, RawAuto, ""},
		{64, 64, 64, RawAlways, "request response"},
		{30, 30, 30, RawAlways, ""},
		{120, 130, 0, RawAuto, "response"},
		{250, 1, 0, RawNever, "request"},
		{1, 1, 250, RawAuto, "response"},
	} {
		r := record("r", callID(), "")
		r.Request, r.Response, r.Raw = sized(c.request<<10), sized(c.response<<10), c.policy
		if c.folded > 0 {
			r.Streamed, r.Folded = true, body(`{"t":"`+strings.Repeat("x", c.folded<<10-8)+`"}`)
		}
		e := encoder{r: r, inline: true, room: room}
		e.allot()
		e.record()
		if e.err != nil || len(e.b) > room+2000 || e.room < 0 || !jsonx.Valid(bytes.TrimSpace(append(e.b[:e.hole:e.hole], append([]byte(`"`), e.b[e.hole:]...)...))) {
			t.Errorf("%+v: a line of %d bytes, %d left, %v", c, len(e.b), e.room, e.err)
		}
		if !bytes.HasSuffix(e.b, []byte(truncatedMember(c.truncated))) {
			t.Errorf("%+v: the line ends with %s", c, e.b[len(e.b)-100:])
		}
		r.release()
	}
}

func truncatedMember(names string) string {
	list := strings.Fields(strings.Trim(names, ""))
	b, _ := json.Marshal(append([]string{}, list...))
	return fmt.Sprintf("\"truncated\":%s}}\n", b)
}

// TestFit: the longest beginning that fits, however the copy lies in memory or in a file.
func TestFit(t *testing.T) {
	units := []string{"a", "é", "東", "😀", "\x00", `"`, "\n", "\xff", "\xe6\x9d", "\xf0\x9f"}
	for range 100 {
		var text strings.Builder
		for range rand.N(300) {
			text.WriteString(units[rand.N(len(units))])
		}
		for range rand.N(3) {
			text.WriteString(strings.Repeat(units[rand.N(len(units))], rand.N(2*fitPiece)))
		}
		in := text.String()
		whole := jsonx.AppendEscaped(nil, []byte(in))
		limit := rand.N(int64(len(whole) + 10))
		if rand.N(4) == 0 {
			limit = int64(len(whole))
		}
		c := NewCopy(CopyOptions{Memory: 1 << rand.N(20)})
		io.WriteString(c, in)
		keep, err := c.fitText(limit)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.appendText(nil, keep)
		if err != nil || int64(len(got)) > limit || !strings.HasPrefix(string(whole), string(got)) {
			t.Fatalf("%d bytes of %d within %d, %v", len(got), len(whole), limit, err)
		}
		if int64(len(whole)) <= limit && keep != int64(len(in)) || int64(len(whole)) > limit && int64(len(got)) < limit-widest-3 { // a beginning that is held back is 3, too
			t.Fatalf("only %d bytes of %d within %d", len(got), len(whole), limit)
		}
		c.Release()
	}
}

// TestUpstreamText: the bodies of the upstream side are bounded as well.
func TestUpstreamText(t *testing.T) {
	text := strings.Repeat("\x00", textMin/widest+1000)
	line := encoded(t, &Record{Upstream: &Upstream{Request: body(text), Response: body("text")}})
	if !strings.Contains(line, `"truncated":["upstream.request"]`) || !strings.Contains(line, `"response_raw":"text"`) || len(line) > textMin+1000 {
		t.Errorf("%d bytes: %s", len(line), line[len(line)-200:])
	}
}

// TestTruncatedIsTold: whatever cuts a body, each body that a record names is told once, and no other.
func TestTruncatedIsTold(t *testing.T) {
	cut := func() *Copy {
		c := NewCopy(CopyOptions{Max: 2})
		io.WriteString(c, `{}   and more`)
		return c
	}
	long := func() *Copy { // as text it is more than there is room for
		c := NewCopy(CopyOptions{Max: textMin})
		io.WriteString(c, strings.Repeat("\x00", textMin/widest+1<<20))
		return c
	}
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"nothing":              {func(*Record) {}, ""},
		"a copy":               {func(r *Record) { r.Request = cut() }, "request"},
		"both copies":          {func(r *Record) { r.Request, r.Response = cut(), cut() }, "request response"},
		"what its caller says": {func(r *Record) { r.Truncated = []string{"response", "response"} }, "response"},
		"both of them":         {func(r *Record) { r.Request, r.Truncated = cut(), []string{"request"} }, "request"},
		"the room of a line":   {func(r *Record) { r.Response, r.Upstream = long(), &Upstream{Request: long()} }, "response upstream.request"},
		"the upstream's side":  {func(r *Record) { r.Upstream = &Upstream{Request: cut(), Response: cut()} }, "upstream.request upstream.response"},
	} {
		var told []string
		s := newStore(t, Options{Observe: Observe{Truncated: func(body string) { told = append(told, body) }}})
		r := record("r", callID(), `{}`)
		c.change(r)
		if err := s.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		named := readBack(t, s.o.Dir, "r").records[0].Ours.Truncated
		if got := strings.Join(told, " "); got != c.want || strings.Join(named, " ") != c.want {
			t.Errorf("%s: told of %q, the record names %q, want %q", name, got, named, c.want)
		}
	}
}
