package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// toy is a dialect whose frames are events and whose bodies are answers, in Go's own JSON. Flaw makes it break one rule.
type toy struct{ flaw string }

func (toy) Name() canon.Dialect                     { return "toy" }
func (toy) Path() string                            { return "/toy" }
func (toy) Judge(_, _ []byte) dialect.Signal        { return dialect.Signal{} }
func (toy) ReadRequest([]byte) (string, bool)       { return "", true }
func (toy) ReadResponse([]byte) (s dialect.Summary) { return s }
func (d toy) NewFolder() dialect.Folder             { return &toyFolder{} }

type toyFolder struct{ folder canon.Folder }

func (f *toyFolder) Event(_, data []byte) dialect.Signal {
	var e canon.Event
	if json.Unmarshal(data, &e) == nil && f.folder.Event(&e) == nil && e.Kind == canon.Ended {
		return dialect.Signal{Verdict: dialect.Complete}
	}
	return dialect.Signal{}
}

func (f *toyFolder) AppendResponse(dst []byte) []byte {
	body, _ := json.Marshal(f.folder.Answer())
	return append(dst, body...)
}

func (f *toyFolder) Summary() (s dialect.Summary) { return s }

func (f *toyFolder) Size() int { return len(f.AppendResponse(nil)) }

func (d toy) AppendError(dst []byte, p canon.Problem) []byte {
	if d.flaw == "says failures wrong" {
		p.Message += "!"
	}
	return fmt.Appendf(dst, `{"error":%s}`, jsonx.AppendString(nil, p.Message))
}

func (d toy) ReadError(status int, body []byte) *canon.Problem {
	message, _ := jsonx.Text(jsonx.Get(body, "error"))
	if !jsonx.Valid(body) || message == "" && d.flaw != "is silent" {
		message = "failed"
	}
	if status < 400 || status > 599 {
		status = 502
	}
	return &canon.Problem{Status: status, Message: message}
}

func (d toy) IsError(body []byte) bool { return jsonx.Get(body, "error") != nil }

func (d toy) ReadCall(body []byte, o dialect.Options) (*canon.Request, error) {
	r := &canon.Request{From: "toy", Body: body}
	for it := jsonx.Object(body); it.Next(); {
		switch name := string(it.Key()); {
		case name == "model":
			r.Model, _ = jsonx.Interior(it.Value())
		case d.flaw == "drops strangers":
		case d.flaw == "loses what it knows" && name == "known":
			o.Losses.Add(name, canon.NoEquivalent)
		default:
			r.Extra = append(r.Extra, canon.Member{Name: it.Key(), Value: it.Value()})
		}
	}
	return r, nil
}

func (d toy) AppendCall(dst []byte, r *canon.Request, _ dialect.Options) ([]byte, error) {
	dst = fmt.Appendf(dst, `{"model":"%s"`, r.Model)
	if d.flaw == "changes the model" {
		dst = fmt.Appendf(dst[:len(dst)-1], `?"`)
	}
	for _, m := range r.Extra {
		dst = fmt.Appendf(dst, `,"%s":%s`, m.Name, m.Value)
	}
	return append(dst, '}'), nil
}

func (d toy) ReadAnswer(body []byte, _ dialect.Options) (*canon.Answer, error) {
	a := new(canon.Answer)
	return a, json.Unmarshal(body, a)
}

func (d toy) AppendAnswer(dst []byte, a *canon.Answer, _ *canon.Request, _ dialect.Options) ([]byte, error) {
	if d.flaw == "unary differs" {
		b := *a
		b.Usage.Prompt++
		a = &b
	}
	body, err := json.Marshal(a)
	return append(dst, body...), err
}

func (d toy) NewDecoder(dialect.Options) dialect.Decoder { return &toyDecoder{flaw: d.flaw} }

type toyDecoder struct {
	flaw string
	kept []byte
	end  bool
}

func (d *toyDecoder) Frame(dst []canon.Event, _, data []byte) ([]canon.Event, error) {
	if len(data) == 0 || string(data) == "wait" {
		return dst, nil
	}
	var e canon.Event
	if err := json.Unmarshal(data, &e); err != nil {
		if d.flaw == "ends when cut" {
			d.end = true
			return append(dst, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd}}), nil
		}
		return dst, errors.New("no event")
	}
	if d.flaw == "keeps the frame" && e.Kind == canon.Open {
		d.kept = data
	}
	if d.kept != nil && e.Kind == canon.Close && !json.Valid(d.kept) {
		return dst, errors.New("somebody wrote into the frame")
	}
	d.end = d.end || e.Kind == canon.Ended || e.Kind == canon.Fail || d.flaw == "sees ends everywhere"
	dst = append(dst, e)
	if d.flaw == "opens twice" && e.Kind == canon.Open {
		dst = append(dst, e)
	}
	return dst, nil
}

func (d *toyDecoder) Finish() error {
	if d.end {
		return nil
	}
	return io.ErrUnexpectedEOF
}

func (d toy) NewEncoder(*canon.Request, dialect.Options) dialect.Encoder {
	return &toyEncoder{flaw: d.flaw}
}

type toyEncoder struct {
	flaw string
	held []byte
	n    int
}

func (w *toyEncoder) Overlap() bool { return false }

func (w *toyEncoder) AppendKeepAlive(dst []byte) []byte {
	w.n++
	return append(dst, "data: wait\n\n"...)
}

func (w *toyEncoder) Append(dst []byte, e *canon.Event) []byte {
	c := *e
	switch {
	case w.flaw == "drops the usage" && e.Kind == canon.Counted:
		return dst
	case w.flaw == "changes the text" && e.Kind == canon.Delta:
		c.Text = []byte(strings.ToUpper(string(e.Text)))
	case w.flaw == "is confused by keep-alives" && e.Kind == canon.Counted && w.n > 0:
		c.Usage.Prompt = 99
	case w.flaw == "hides the failure" && e.Kind == canon.Fail:
		return dst
	}
	body, _ := json.Marshal(c)
	frame := fmt.Appendf(nil, "data: %s\n\n", body)
	switch {
	case w.flaw == "holds a delta" && e.Kind == canon.Delta:
		w.held = append(w.held, frame...)
		return dst
	case w.flaw == "writes half a frame" && e.Kind == canon.Delta:
		return append(dst, frame[:len(frame)-1]...)
	case w.flaw == "writes in front" && len(dst) > 0:
		dst[len(dst)-1] = ' '
	}
	dst = append(dst, w.held...)
	w.held = nil
	return append(dst, frame...)
}

// recorder is a testing.TB that notes what fails.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func toyStream(events ...canon.Event) []byte {
	var enc toyEncoder
	var out []byte
	for i := range events {
		out = enc.Append(out, &events[i])
	}
	return out
}

// checkAll gives a dialect the checks of the kit.
func checkAll(tb testing.TB, d toy) {
	text := func(i int, s string) canon.Event { return canon.Event{Kind: canon.Delta, Part: i, Text: canon.Text(s)} }
	start := canon.Event{Kind: canon.Start, ID: canon.Text("1"), Usage: canon.NoUsage()}
	counted := canon.Event{Kind: canon.Counted, Usage: canon.Usage{Prompt: 1, Completion: 2}}
	whole := toyStream(start, canon.Event{Kind: canon.Open, Type: canon.TextPart}, text(0, "a"), text(0, "b"),
		canon.Event{Kind: canon.Open, Part: 1, Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("f")}}, text(1, "{}"), text(0, "c"),
		canon.Event{Kind: canon.Close}, canon.Event{Kind: canon.Close, Part: 1}, counted, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd}})
	failed := toyStream(start, canon.Event{Kind: canon.Fail, Problem: &canon.Problem{Status: 500, Message: "m"}})
	cut := whole[:bytes.LastIndex(whole[:len(whole)/2], []byte("\n\n"))+2]
	for _, stream := range [][]byte{whole, failed, cut} {
		good := toy{}
		if strings.Contains(d.flaw, "the frame") || d.flaw == "ends when cut" || d.flaw == "opens twice" || d.flaw == "sees ends everywhere" {
			Truncation(tb, d, stream)
			SplitInvariance(tb, d, stream)
			Square(tb, d, good, stream)
			continue
		}
		Square(tb, good, d, stream)
		UnaryEqualsStream(tb, good, d, stream)
		SplitInvariance(tb, d, stream)
		Truncation(tb, d, stream)
		Concurrent(tb, good, d, map[string][]byte{"a": stream})
		CheckStream(tb, good, d, stream, 3)
	}
	TotalErrors(tb, d)
	RequestRoundTrip(tb, d, []byte(`{"model":"m","known":1}`))
	CheckCall(tb, d, d, []byte(`{"model":"m"}`))
	Answer(tb, toy{}, d, decodedAnswer(whole))
}

func decodedAnswer(stream []byte) []byte { return []byte(Fold(toy{}, stream).Response) }

func TestKitIsContent(t *testing.T) { checkAll(t, toy{}) }

func TestKitBites(t *testing.T) {
	for flaw, rule := range map[string]string{
		"says failures wrong":        "says the same",
		"is silent":                  "says something",
		"drops strangers":            "kept or lost",
		"loses what it knows":        "can say what it says",
		"changes the model":          "the same: .Model",
		"unary differs":              "unary and stream say the same: usage.prompt",
		"ends when cut":              "an end that is understood is understood whole",
		"keeps the frame":            "somebody wrote",
		"sees ends everywhere":       "Finish tells the end that was seen",
		"opens twice":                "of the grammar",
		"drops the usage":            "usage.prompt",
		"changes the text":           "parts",
		"is confused by keep-alives": "keep-alives change nothing",
		"hides the failure":          "sees a failure when it came",
		"holds a delta":              "written at once",
		"writes half a frame":        "whole frames",
		"writes in front":            "touches nothing in front",
	} {
		t.Run(flaw, func(t *testing.T) {
			r := &recorder{TB: t}
			checkAll(r, toy{flaw})
			for _, f := range r.failures {
				if strings.Contains(f, rule) {
					return
				}
			}
			t.Errorf("the kit must find it by the rule %q; it found %q", rule, r.failures)
		})
	}
}

func TestDifferences(t *testing.T) {
	answer := func(parts ...canon.Part) *canon.Answer {
		return &canon.Answer{Parts: parts, Usage: canon.NoUsage(), Stop: canon.Stop{Reason: canon.StopEnd}}
	}
	text := func(s string) canon.Part { return canon.Part{Type: canon.TextPart, Text: canon.Text(s)} }
	call := func(id, arguments string) canon.Part {
		return canon.Part{Type: canon.CallPart, Call: canon.Call{ID: canon.Text(id), Name: canon.Text("f"), Arguments: canon.Text(arguments)}}
	}
	counted := func(n int64) *canon.Answer {
		a := answer()
		a.Usage.Cached = n
		return a
	}
	stopped := func(r canon.StopReason, sequence string) *canon.Answer {
		a := answer()
		a.Stop = canon.Stop{Reason: r, Sequence: canon.Text(sequence)}
		return a
	}
	for _, c := range []struct {
		name string
		a, b *canon.Answer
		want string
	}{
		{"nothing", answer(), answer(), ""},
		{"how a text is cut", answer(text("a"), text("b")), answer(text("ab"), text("")), ""},
		{"how a text is escaped", answer(text(`\u0041\n`)), answer(text(`A\u000a`)), ""},
		{"texts", answer(text("a")), answer(text("b")), "parts"},
		{"order", answer(text("a"), call("1", "{}")), answer(call("1", "{}"), text("a")), "order"},
		{"order of calls", answer(call("1", "{}"), call("2", "{}")), answer(call("2", "{}"), call("1", "{}")), "parts"},
		{"arguments that are cut", answer(call("1", `{\"a`)), answer(call("1", "{}")), "arguments"},
		{"reasoning as a summary", answer(canon.Part{Type: canon.ReasoningPart, Text: canon.Text("a")}), answer(canon.Part{Type: canon.ReasoningPart, Summary: canon.Text("a")}), ""},
		{"reasoning as a text", answer(canon.Part{Type: canon.ReasoningPart, Text: canon.Text("a")}), answer(text("a")), "parts"},
		{"ids of calls", answer(call("1", "{}")), answer(call("2", "{}")), "parts"},
		{"no arguments", answer(call("1", "")), answer(call("1", " {} ")), ""},
		{"arguments", answer(call("1", `{\"a\":1}`)), answer(call("1", `{\"a\": 1}`)), "parts"},
		{"a count of 0", counted(canon.Unknown), counted(0), ""},
		{"a count", counted(canon.Unknown), counted(1), "usage.cached"},
		{"a stop sequence that is no more than an end", stopped(canon.StopSequence, "x"), stopped(canon.StopEnd, ""), "stop.sequence"},
		{"which stop sequence", stopped(canon.StopSequence, "x"), stopped(canon.StopSequence, "y"), "stop.sequence"},
		{"the reason", stopped(canon.StopLength, ""), stopped(canon.StopEnd, ""), "stop"},
		{"an end", answer(), stopped(0, ""), "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, d := range Differences(c.a, c.b) {
				names = append(names, d.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
