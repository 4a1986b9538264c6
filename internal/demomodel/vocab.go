package demomodel

import "strings"

// The special tokens, in the order of their ids behind the 256 bytes. Only the
// chat template and the model itself write them: the same characters in a text
// are ordinary bytes.
const (
	tokTurn = 256 + iota
	tokEnd
	tokThink
	tokThinkEnd
	tokCall
	tokCallEnd
	firstPiece
)

var specials = [...]string{"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"}

// words become a piece each twice: with a space in front and without.
const words = `
the of and to in is it you that he was for on are as with his they at be this have from or one had by
word but not what all were we when your can said there use an each which she do how their if will up
other about out many then them these so some her would make like him into time has look two more write
go see number no way could people my than first water been call who now find long down day did get
come made may part over new sound take only little work know place year live me back give most very
after thing our just name good sentence man think say great where help through much before line right
too mean old any same tell boy follow came want show also around form three small set put end does
another well large must big even such because turn here why ask went read need land different home us
move try kind hand picture again change off play spell air away animal house point page letter mother
answer found study still learn should world user model assistant system tool result results function
arguments description parameters properties required object string type array integer boolean weather
city file path command query demo sky blue light red short waves Paris France capital sunny token tokens
message messages content text request response error value count data list test code run check open
rollout agent reason first second third twice both`

// pieces of JSON, of code and of word endings that are not words.
var marks = []string{
	"\n\n", "\n  ", "  ", "    ", ". ", ", ", ".\n", ": ", "\": \"", "\", \"", "\": ", "\":", "\",", " \"", "{\"", "}}", "\"}", "{\"name\": \"",
	"\", \"arguments\": ", "\"type\": \"", "\"type\":\"", "\":\"", "\",\"", "\":{\"", "\"},\"", "[]", "{}", "()", "ing", "ed", "er", "ion",
	"tion", "ly", "es", "al", "'s", "n't", "th", "st", "nd", "ent", "ment", "able", "http", "://", "->", "=>", "==", "//",
	"The", " The", "It", " It", "I", " I", "You", " You", "This", " This", "A", " A", "get", "_", "get_", "set_", "read_",
	"true", "false", "null", "10", "20", "100", "200", "é", "ü", "…", "—", "’",
}

// vocabulary lists every piece of more than one byte once, in the order of ids.
func vocabulary() []string {
	seen := make(map[string]bool)
	var all []string
	add := func(s string) {
		if len(s) > 1 && !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	for _, w := range strings.Fields(words) {
		add(" " + w)
		add(w)
	}
	for _, m := range marks {
		add(m)
	}
	return all
}
