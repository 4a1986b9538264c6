package sse

import (
	"bytes"
	"testing"
)

type result struct {
	events   []event
	safe     int64 // before the end of the stream
	comments int64
}

// reference splits a whole stream in the plainest way.
func reference(in []byte, most int) (r result) {
	i := 0
	if bytes.HasPrefix(in, []byte(mark)) {
		i = len(mark)
	} else if bytes.HasPrefix([]byte(mark), in) {
		return r // not even a line yet
	}
	r.safe = int64(i)
	var e event
	open := false
	last := 0 // where the last line ended; an LF behind a CR does not count, since it may come later
	finish := func(stop, end int) {
		e.end = int64(end)
		if e.oversized = int64(stop)-e.start > int64(most); e.oversized {
			e.data, e.hasData = "", false
		}
		if e.oversized || e.hasData || e.name != "" {
			r.events = append(r.events, e)
		}
		e, open = event{}, false
	}
	for i < len(in) {
		n := bytes.IndexAny(in[i:], "\r\n")
		terminated := n >= 0
		if !terminated {
			n = len(in) - i
		}
		line, first := string(in[i:i+n]), i
		i += n
		stop := i
		if terminated {
			i++
			stop = i
			if in[i-1] == '\r' && i < len(in) && in[i] == '\n' {
				i++
			}
		}
		last = stop
		switch {
		case line == "":
			if open {
				finish(stop, i)
			}
		case line[0] == ':':
			if terminated {
				r.comments++
			}
		default:
			if !open {
				open, e.start = true, int64(first)
			}
			if int64(stop)-e.start > int64(most) {
				break
			}
			field, value, _ := bytes.Cut([]byte(line), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				e.name = string(value)
			case "error", "data":
				if string(field) == "error" {
					if !bytes.HasPrefix(value, []byte("{")) {
						break
					}
					e.name = "error"
				}
				if e.hasData {
					e.data += "\n"
				}
				e.data, e.hasData = e.data+string(value), true
			}
		}
		if terminated && !open {
			r.safe = int64(i)
		}
	}
	if open {
		finish(last, len(in))
	}
	return r
}

// FuzzSplitter: every split gives the events, the comments and the safe offsets of the reference.
func FuzzSplitter(f *testing.F) {
	for _, tc := range cases {
		f.Add([]byte(tc.in), uint(len(tc.in)/3), uint(len(tc.in)/2), uint8(max))
	}
	for _, in := range fixtures(f) {
		f.Add(in, uint(len(in)/3), uint(len(in)/2), uint8(0))
		crlf := bytes.ReplaceAll(in[:min(2000, len(in))], []byte("\n"), []byte("\r\n"))
		f.Add(crlf, uint(len(crlf)/3), uint(len(crlf)/2), uint8(200))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint, most uint8) {
		limit := int(most)
		if limit == 0 {
			limit = defaultMax
		}
		first, second := int(a%uint(len(in)+1)), int(b%uint(len(in)+1))
		if first > second {
			first, second = second, first
		}
		want := reference(in, limit)
		for _, cuts := range [][]int{nil, {first}, {first, second}, {second, min(second+1, len(in))}} {
			got, _, comments := run(t, in, limit, cuts...)
			if !same(in, got, want.events) {
				t.Fatalf("cut at %v: %v, want %v", cuts, got, want.events)
			}
			// The end of a line that the stream leaves open is nobody's business.
			if comments != want.comments {
				t.Fatalf("cut at %v: %d comments, want %d", cuts, comments, want.comments)
			}
		}
		if len(in) > 300 {
			return
		}
		var bytewise []int
		for i := range in {
			bytewise = append(bytewise, i)
		}
		if got, _, _ := run(t, in, limit, bytewise...); !same(in, got, want.events) {
			t.Fatalf("byte by byte: %v, want %v", got, want.events)
		}
	})
}
