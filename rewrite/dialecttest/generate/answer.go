package generate

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
)

// Answer is what a model server says, in one body and as the stream of events that it makes of the same.
type Answer struct{ Unary, Stream []byte }

// Said draws an answer of a dialect that model servers speak.
func Said(t *rapid.T, d canon.Dialect) Answer {
	g := newGen(t)
	a := g.answer(d)
	switch d {
	case canon.Messages:
		return Answer{[]byte(a.messages()), []byte(a.messagesStream())}
	case canon.Responses:
		return Answer{[]byte(a.responses()), []byte(a.responsesStream())}
	case canon.Chat:
		return Answer{[]byte(a.chat()), []byte(a.chatStream())}
	}
	panic("no dialect of model servers: " + d)
}

// said is an answer apart from its dialect.
type said struct {
	parts                        []saidPart
	cut                          bool // by length
	prompt, completion, cached   int
	reasoning                    int
	sequence, filtered, anyCalls bool
}

// saidPart is a thought, a text, or a call with its arguments; pieces are the text as a stream brings it.
type saidPart struct {
	kind      canon.PartType
	pieces    []string // insides of strings
	signature string
	id, name  string
}

func (p *saidPart) text() string { return strings.Join(p.pieces, "") }

func (g *gen) answer(d canon.Dialect) *said {
	a := &said{prompt: 20 + g.one("prompt", 5), completion: 10 + g.one("completion", 5), cached: g.one("cached", 9), reasoning: g.one("reasoning", 5)}
	thoughts, texts := 2, 3
	if d == canon.Chat { // a message has one of each
		thoughts, texts = 1, 1
	}
	for range g.times("thoughts", thoughts) {
		p := saidPart{kind: canon.ReasoningPart, pieces: g.pieces("thinking"), signature: "EqQBCgIYAhIM+/A=="}
		if d == canon.Messages && g.flip("redacted", 5) {
			p = saidPart{kind: canon.RedactedPart, signature: "EmwKAhgB+/=="}
		}
		if d == canon.Responses {
			p.signature = g.pick("sealed", "", "gAAAAABo+/==")
		}
		a.parts = append(a.parts, p)
	}
	for range g.times("texts", texts) {
		a.parts = append(a.parts, saidPart{kind: canon.TextPart, pieces: g.pieces("text")})
	}
	for range g.times("calls", 3) {
		a.parts = append(a.parts, saidPart{kind: canon.CallPart, id: g.id(d == canon.Messages), name: g.pick("name", "f", "get_Weather-0"), pieces: g.argumentPieces()})
		a.anyCalls = true
	}
	if len(a.parts) == 0 {
		a.parts = []saidPart{{kind: canon.TextPart, pieces: g.pieces("text")}}
	}
	switch g.one("stop", 5) {
	case 2:
		a.cut = true
	case 3:
		a.filtered = true
	case 4:
		a.sequence = !a.anyCalls && d == canon.Messages
	}
	return a
}

// pieces of a text; each is whole in its escapes.
func (g *gen) pieces(label string) []string {
	all := []string{"x"}
	for range g.times(label, 3) {
		all = append(all, g.text(label))
	}
	return all
}

// argumentPieces cut the text of a JSON object anywhere.
func (g *gen) argumentPieces() []string {
	input := []rune(g.input())
	at := g.one("cut", len(input))
	var pieces []string
	for _, piece := range []string{string(input[:at]), string(input[at:])} {
		if piece != "" {
			pieces = append(pieces, escaped(piece))
		}
	}
	return pieces
}

// input is the object that a call's pieces are the text of.
func (p *saidPart) input() string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(p.text())
}

func event(name, data string) string {
	if name == "" {
		return "data: " + data + "\n\n"
	}
	return "event: " + name + "\ndata: " + data + "\n\n"
}

// finish is the finish reason in Chat's words, or in those of Messages.
func (a *said) finish(chat bool) string {
	words := [...]string{"end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence"}
	if chat {
		words = [...]string{"stop", "tool_calls", "length", "content_filter", "stop"}
	}
	switch {
	case a.cut:
		return words[2]
	case a.filtered:
		return words[3]
	case a.sequence:
		return words[4]
	case a.anyCalls:
		return words[1]
	}
	return words[0]
}

func (a *said) chatUsage() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		a.prompt, a.completion, a.prompt+a.completion, a.cached, a.reasoning)
}

func (a *said) chat() string {
	message := []string{`"role":"assistant"`}
	var calls []string
	content := "null"
	for i := range a.parts {
		switch p := &a.parts[i]; p.kind {
		case canon.ReasoningPart:
			message = append(message, `"reasoning":`+quote(p.text()))
		case canon.TextPart:
			content = quote(p.text())
		case canon.CallPart:
			calls = append(calls, fmt.Sprintf(`{"id":"%s","type":"function","function":{"name":"%s","arguments":"%s"}}`, p.id, p.name, p.text()))
		}
	}
	if message = append(message, `"content":`+content); len(calls) > 0 {
		message = append(message, `"tool_calls":[`+strings.Join(calls, ",")+`]`)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{%s},"finish_reason":"%s"}],"usage":%s}`,
		strings.Join(message, ","), a.finish(true), a.chatUsage())
}

func (a *said) chatStream() string {
	var out strings.Builder
	chunk := func(choices, usage string) {
		out.WriteString(event("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[`+choices+`]`+usage+`}`))
	}
	delta := func(members string) { chunk(`{"index":0,"delta":{`+members+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant","content":""`)
	calls := 0
	for i := range a.parts {
		p := &a.parts[i]
		switch p.kind {
		case canon.ReasoningPart:
			for _, piece := range p.pieces {
				delta(`"reasoning":` + quote(piece))
			}
		case canon.TextPart:
			for _, piece := range p.pieces {
				delta(`"content":` + quote(piece))
			}
		case canon.CallPart:
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":""}}]`, calls, p.id, p.name))
			for _, piece := range p.pieces {
				delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]`, calls, piece))
			}
			calls++
		}
	}
	chunk(`{"index":0,"delta":{},"finish_reason":"`+a.finish(true)+`"}`, "")
	chunk("", `,"usage":`+a.chatUsage())
	out.WriteString("data: [DONE]\n\n")
	return out.String()
}
