package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

const room = 1 << 20

// watch pushes the pieces and says after each of them how far bytes may go.
func watch(o *Observer, pieces ...string) (safe []int64, last Progress) {
	for _, p := range pieces {
		last = o.Push([]byte(p))
		safe = append(safe, last.Safe)
	}
	last = o.Finish()
	return append(safe, last.Safe), last
}

func TestWhatMayBeLetGo(t *testing.T) {
	const (
		text  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}]}\n\n"
		usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"
		done  = "data: [DONE]\n\n"
	)
	n := func(s ...string) int64 { return int64(len(strings.Join(s, ""))) }
	for _, c := range []struct {
		name    string
		dialect canon.Dialect
		pieces  []string
		safe    []int64 // after each piece, then after the end
		verdict dialect.Verdict
		end     int64
	}{
		{"the terminal event is held from its first byte, split inside its name", canon.Messages,
			[]string{"event: message_", "stop\ndata: {\"type\":\"message_stop\"}\n\n"}, []int64{0, 0, 0}, dialect.Complete, 0},
		{"what shares a read with the end goes out", canon.Chat, []string{text, text + usage + done}, []int64{n(text), n(text, text, usage), n(text, text, usage)},
			dialect.Complete, n(text, text, usage)},
		{"an end that is not whole yet is held", canon.Chat, []string{text + "data: [DO", "NE]\n", "\n"}, []int64{n(text), n(text), n(text), n(text)}, dialect.Complete, n(text)},
		{"an event in progress is held, it may become the end", canon.Chat, []string{"da", "ta: {}\n", "\n"}, []int64{0, 0, 10, 10}, dialect.None, 0},
		{"comments are not held", canon.Chat, []string{": keep-alive\n\n", ": keep-alive\n\n" + text}, []int64{14, 28 + n(text), 28 + n(text)}, dialect.None, 0},
		{"a last event without a blank line is the end", canon.Chat, []string{text, "data: [DONE]"}, []int64{n(text), n(text), n(text)}, dialect.Complete, n(text)},
		{"a body cut inside an event is let go whole", canon.Chat, []string{text, "data: {\"ch"}, []int64{n(text), n(text), n(text) + 10}, dialect.None, 0},
		{"what follows the end is held with it", canon.Chat, []string{text + done + text, text}, []int64{n(text), n(text), n(text)}, dialect.Complete, n(text)},
		{"the first end counts", canon.Chat, []string{"data: {\"error\":{\"code\":500}}\n\n" + done}, []int64{0, 0}, dialect.Failed, 0},
		{"an incomplete end", canon.Responses, []string{"event: response.incomplete\ndata: {}\n\n"}, []int64{0, 0}, dialect.Incomplete, 0},
		{"an empty body", canon.Chat, nil, []int64{0}, dialect.None, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			safe, last := watch(NewObserver(DialectOf(c.dialect), room), c.pieces...)
			if fmt.Sprint(safe) != fmt.Sprint(c.safe) || last.Verdict != c.verdict || last.End != c.end {
				t.Errorf("got  %v %v at %d\nwant %v %v at %d", safe, last.Verdict, last.End, c.safe, c.verdict, c.end)
			}
		})
	}
}

func TestContentIsNotACommentARoleOrUsage(t *testing.T) {
	o := NewObserver(DialectOf(canon.Chat), room)
	for _, c := range []struct {
		piece string
		want  bool
	}{
		{": keep-alive\n\n", false},
		{"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n", false},
		{"data: {\"choices\":[],\"usage\":{}}\n\n", false},
		{"data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\"}}]}\n", false},
		{"\n", true},
		{": keep-alive\n\n", true},
	} {
		if got := o.Push([]byte(c.piece)).Content; got != c.want {
			t.Errorf("after %q: got %v, want %v", c.piece, got, c.want)
		}
	}
}

func TestTheFoldEndsWithTheStream(t *testing.T) {
	o := NewObserver(DialectOf(canon.Chat), room)
	watch(o, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":\"stop\"}]}\n\n",
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"B\"}}]}\n\n")
	want := `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"}],"object":"chat.completion",` +
		`"usage":{"prompt_tokens":3,"completion_tokens":1}}`
	if got := string(o.AppendResponse(nil)); got != want || !o.Folded() {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s := o.Summary()
	if s.Model != "m" || s.Finish != "stop" || s.Usage != (canon.Usage{Prompt: 3, Completion: 1, Cached: -1, CacheWrite: -1, Reasoning: -1}) {
		t.Errorf("got %+v", s)
	}
}

func TestBeyondTheLimitOnlyTheFoldIsGivenUp(t *testing.T) {
	o := NewObserver(DialectOf(canon.Chat), 100)
	text := "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}]}\n\n"
	if o.Push([]byte(text)); !o.Folded() {
		t.Error("within the limit it folds")
	}
	if o.Push([]byte(text)); o.Folded() || o.AppendResponse(nil) != nil || o.Summary().Model != "m" {
		t.Error("beyond the limit it has no response, and keeps what it knew")
	}
	if p := o.Push([]byte("data: [DONE]\n\n")); p.Verdict != dialect.Complete || p.End != 2*int64(len(text)) {
		t.Errorf("the end is found all the same: %+v", p)
	}
}

// What comes last in a stream is told of it, however long it was and whenever its fold was given up.
func TestTheSummaryOutlivesTheFold(t *testing.T) {
	for _, r := range recorded {
		_, raw := recordedEvents(t, r.file)
		whole := NewObserver(DialectOf(r.dialect), room)
		watch(whole, string(raw))
		for at := 0; at < len(raw); at += 1 + len(raw)/50 {
			o := NewObserver(DialectOf(r.dialect), room)
			o.Push(raw[:at])
			o.GiveUp()
			o.Push(raw[at:])
			o.Finish()
			got, want := o.Summary(), whole.Summary()
			if got.Usage.Completion != want.Usage.Completion || got.Usage.Prompt != want.Usage.Prompt || got.Model != want.Model || got.HasError != want.HasError || o.Folded() {
				t.Errorf("%s, given up at %d: got %+v, want %+v", r.name, at, got, want)
			}
		}
	}
	const text = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}]}\n\n"
	o := NewObserver(DialectOf(canon.Chat), 1)
	for range 3 * partLimit / len(text) {
		o.Push([]byte(text))
		if size := o.fold.folder.Size(); size > 2*partLimit {
			t.Fatalf("%d bytes are kept for a few words", size)
		}
	}
	watch(o, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n")
	if s := o.Summary(); s.Model != "m" || s.Finish != "length" || s.Usage.Completion != 9 || o.FoldSize() != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestWithoutRoomNothingIsFolded(t *testing.T) {
	o := NewObserver(DialectOf(canon.Messages), 0)
	_, p := watch(o, "event: content_block_delta\ndata: {\"delta\":{\"text\":\"A\"}}\n\nevent: message_stop\ndata: {}\n\n")
	if o.Folded() || p.Verdict != dialect.Complete || !p.Content || o.Summary().Usage != canon.NoUsage() {
		t.Errorf("got %+v %+v", p, o.Summary())
	}
}

func TestAnEventTooLargeToKeepBlindsAndJudgingGoesOn(t *testing.T) {
	o := NewObserver(DialectOf(canon.Chat), room)
	o.split.Max = 64
	p := o.Push([]byte("data: {}\n\ndata: \"" + strings.Repeat("x", 100)))
	if !p.Blind || p.Safe != 10 || p.Verdict != dialect.None {
		t.Errorf("inside it: %+v", p)
	}
	p = o.Push([]byte("\"\n\ndata: {}\n\n"))
	if !p.Blind || p.Verdict != dialect.None || o.Folded() {
		t.Errorf("behind it: %+v, folded %v", p, o.Folded())
	}
	p = o.Push([]byte("data: [DONE]\n\n"))
	if !p.Blind || p.Verdict != dialect.Complete {
		t.Errorf("at the end: %+v", p)
	}
}

func TestALargeTerminalEventIsKnownByItsName(t *testing.T) {
	o := NewObserver(DialectOf(canon.Responses), room)
	o.split.Max = 64
	_, p := watch(o, "event: response.completed\ndata: {\"response\":\""+strings.Repeat("x", 100)+"\"}\n\n")
	if p.Verdict != dialect.Complete || p.End != 0 || p.Safe != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestHowAStreamIsSplitDoesNotMatter(t *testing.T) {
	for _, r := range recorded {
		t.Run(r.name, func(t *testing.T) {
			_, raw := recordedEvents(t, r.file)
			whole := NewObserver(DialectOf(r.dialect), room)
			_, want := watch(whole, string(raw))
			for _, n := range []int{1, 7, 4096} {
				o := NewObserver(DialectOf(r.dialect), room)
				last := int64(0)
				for at := 0; at < len(raw); at += n {
					p := o.Push(raw[at:min(at+n, len(raw))])
					if p.Safe < last || p.Safe > int64(at+n) || p.Verdict != dialect.None && p.Safe > p.End {
						t.Fatalf("at %d: %+v after %d", at, p, last)
					}
					last = p.Safe
				}
				if got := o.Finish(); got != want || string(o.AppendResponse(nil)) != string(whole.AppendResponse(nil)) || o.Summary() != whole.Summary() {
					t.Errorf("pieces of %d: got %+v, want %+v", n, got, want)
				}
			}
		})
	}
}
