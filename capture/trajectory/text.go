package trajectory

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Inert makes text that anybody may have written safe to print: what would move the cursor, colour, retitle, reorder or
// hide is shown as a visible sign. Line feeds and tabs stay, CRLF becomes a line feed.
func Inert(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	clean := true
	for _, r := range text {
		if r == utf8.RuneError || acts(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !acts(r):
			b.WriteRune(r) // a byte that is no UTF-8 arrives as U+FFFD
		case r < 0x20:
			b.WriteRune(0x2400 + r) // control pictures
		case r == 0x7f:
			b.WriteRune(0x2421)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// acts says that a terminal may obey r instead of showing it. Of the format characters (bidi overrides, invisible tags, …)
// only the joiner that emoji are made with is harmless.
func acts(r rune) bool {
	switch r {
	case '\n', '\t', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// Size is an amount of bytes that a person reads.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if f < 999.95 {
			break
		}
		f, unit = f/1024, next
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// Took is a duration in milliseconds that a person reads.
func Took(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%d ms", int(ms))
	case ms < 60e3:
		return fmt.Sprintf("%.1f s", ms/1e3)
	case ms < 3600e3:
		return fmt.Sprintf("%dm%02ds", int(ms/60e3), int(ms/1e3)%60)
	}
	return fmt.Sprintf("%dh%02dm", int(ms/3600e3), int(ms/60e3)%60)
}
