package generate

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
)

// Call is the body of a request.
func Call(t *rapid.T, d canon.Dialect) []byte {
	g := newGen(t)
	switch d {
	case canon.Messages:
		return []byte(g.messagesCall())
	case canon.Responses:
		return []byte(g.responsesCall())
	case canon.Chat:
		return []byte(g.chatCall())
	case canon.Gemini:
		return []byte(g.geminiCall())
	}
	panic("no dialect " + d)
}

// gen draws one body. Values are JSON; texts are the insides of strings.
type gen struct {
	t     *rapid.T
	space string // behind commas and colons
	ids   int    // made so far
	tools []tool // that the request offers
	calls []call // of the turn that waits for its results
}

// tool is one that calls can name.
type tool struct {
	name, namespace string
	custom          bool
}

// call is one that has no result yet.
type call struct {
	id, name string
	custom   bool
}

func newGen(t *rapid.T) *gen {
	g := &gen{t: t}
	g.space = g.pick("space", "", " ", "\n\t")
	return g
}

// one draws 0 to n-1; what is simple comes first.
func (g *gen) one(label string, n int) int { return rapid.IntRange(0, n-1).Draw(g.t, label) }

// times draws how often: a few times at most, often not at all.
func (g *gen) times(label string, most int) int { return g.one(label, most+1) }

// flip is true in one of n cases.
func (g *gen) flip(label string, n int) bool { return g.one(label, n) == n-1 }

func (g *gen) pick(label string, words ...string) string {
	return words[g.one(label, len(words))]
}

// maybe is one of the words, or nothing.
func (g *gen) maybe(label string, words ...string) string {
	if !g.flip(label, 3) {
		return ""
	}
	return g.pick(label, words...)
}

// object writes pairs of names and values in any order, without those whose value is empty, and now and then with a member that is newer than
// everybody.
func (g *gen) object(pairs ...string) string {
	var members []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			members = append(members, `"`+pairs[i]+`":`+g.space+pairs[i+1])
		}
	}
	if len(members) > 0 && g.flip("newer", 40) {
		members = append(members, `"x_newer":`+g.space+`[1,"\u00e9"]`)
	}
	if n := len(members); n > 1 {
		from := g.one("order", n)
		members = append(members[from:n:n], members[:from]...)
	}
	return "{" + strings.Join(members, ","+g.space) + "}"
}

func (g *gen) list(values ...string) string { return "[" + strings.Join(values, ","+g.space) + "]" }

func quote(text string) string { return `"` + text + `"` }

// text is one with something in it that is easily spoilt.
func (g *gen) text(label string) string {
	text := ""
	for range 1 + g.times(label, 2) {
		text += g.pick(label, "a", "b c", `\n`, `\"`, `\\`, `\/`, `\u00e9`, "é", `\ud83d\ude00`, "😀", `\ud800`, `x\udc00`, `\u2028`, "\u2028", `\u0000`,
			`\u001b[31m`, "<think>", "</think>", "data: x", "[DONE]", "  ", `\u0041`, "7")
	}
	return text
}

func (g *gen) quoted(label string) string { return quote(g.text(label)) }

// fraction is a number between 0 and 1.
func (g *gen) fraction(label string) string {
	return g.pick(label, "0.5", "0.70", "1e-1", "0.30000000000000004", "5E-1", "0.125")
}

// id is a fresh one. Plain ones have the letters that Messages takes.
func (g *gen) id(plain bool) string {
	g.ids++
	forms := []string{"call_%d", "toolu_01Ab-%d", "call_9fAb-4_%d"}
	if !plain {
		forms = append(forms, "functions.get:%d", "a/b|%d", "ü%d", `q\"%d`, "rtid_%d", "with space %d", `\u0061%d`)
	}
	return fmt.Sprintf(g.pick("id", forms...), g.ids)
}

// schema is that of an object.
func (g *gen) schema() string {
	return g.pick("schema",
		`{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"a":{"type":"string","description":"\u00e9 \ud83d\ude00"}},"required":["a"]}`,
		`{ "type" : "object", "properties":{"n":{"type":"number","minimum":1.0,"maximum":1e3},"m":{"enum":["x", 1 ,null]}}, "additionalProperties": false}`,
		`{"type":"object","properties":{"b":{"type":"array","items":{"type":"object","properties":{}}}},"$defs":{"x":{"type":"null"}}}`)
}

// input is an object that a tool is called with.
func (g *gen) input() string {
	return g.pick("input", `{}`, `{"a":1.0}`, `{ "b" : 1e3 , "a":"\u00e9\ud800"}`, `{"n":{"x":[1,2.50,null,true,"\u2028"]},"":0}`, `{"big":12345678901234567890123}`,
		"{\"q\":\"\\\"\\\\\\/\u2028\"}", `{"input":"x"}`)
}

// escaped is a JSON value as the inside of a string.
func escaped(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value)
}

// toolName is a new one with letters that every dialect takes.
func (g *gen) toolName(i int) string {
	return fmt.Sprintf(g.pick("tool", "f%d", "get_Weather-%d", "mcp__srv__do_%d", "F%d_"+strings.Repeat("x", 40)), i)
}

// tool draws one of those on offer, or one that has gone.
func (g *gen) tool() tool {
	if len(g.tools) == 0 || g.flip("gone", 8) {
		return tool{name: "gone"}
	}
	return g.tools[g.one("which", len(g.tools))]
}

const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	pdf = "JVBERi0xLjQK"
)

func (g *gen) imageURL() string {
	return g.pick("image", "https://h/x.png?a=1&b=2", "data:image/png;base64,"+png, "data:image/jpeg;base64,/9j/4AA=", `https:\/\/h\/y.png`)
}
