package page

import (
	"fmt"
	"unicode/utf8"

	"rolltap/capture"
	"rolltap/capture/trajectory"
)

// TextShown is how many bytes of one text are shown.
const TextShown = 64 << 10

// appendText appends text that anybody may have written: inert, and with nothing left that means anything in HTML.
func appendText(dst []byte, text string) []byte {
	text = trajectory.Inert(capture.Brief(text))
	from := 0
	for i := range len(text) {
		var as string
		switch text[i] {
		case '<':
			as = "&lt;"
		case '>':
			as = "&gt;"
		case '&':
			as = "&amp;"
		case '"':
			as = "&quot;"
		case '\'':
			as = "&#39;"
		default:
			continue
		}
		dst = append(append(dst, text[from:i]...), as...)
		from = i + 1
	}
	return append(dst, text[from:]...)
}

// cut shortens a text to so many bytes, at a whole character, and says whether it had to.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// count is a number that may be unknown (below 0).
func count(n int64) string {
	switch {
	case n < 0:
		return "–"
	case n < 10000:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}
