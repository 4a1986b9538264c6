package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"rolltap/capture/trajectory"
)

// style is how a piece of text looks on a terminal that may be coloured, and nothing elsewhere.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	blue    style = "34"
	magenta style = "35"
	cyan    style = "36"
)

// paint colours text, which has to be inert already.
func (c *Console) paint(s style, text string) string {
	if !c.Colour || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// inert makes text that anybody may have written safe to print.
func inert(text string) string { return trajectory.Inert(text) }

// inertLine is inert for text that has to stay on its line.
func inertLine(text string) string {
	return strings.NewReplacer("\n", "⏎", "\t", " ").Replace(inert(text))
}

// shorten cuts text to so many lines and runes, and says whether it had to.
func shorten(text string, lines, runes int) (string, bool) {
	end, cut := len(text), false
	for i := range text {
		if runes--; runes < 0 {
			end, cut = i, true
			break
		}
	}
	for i := range end {
		if text[i] != '\n' {
			continue
		}
		if lines--; lines <= 0 {
			return text[:i], true
		}
	}
	return text[:end], cut
}

// wrap breaks a line at spaces into lines of at most width runes, where it can; a narrow or unknown width breaks nothing.
func wrap(l string, width int) []string {
	if width < 20 || utf8.RuneCountInString(l) <= width {
		return []string{l}
	}
	var lines []string
	start, space, n := 0, -1, 0 // of the line in progress: where it began, its last space, its runes
	for i, r := range l {
		if r == ' ' {
			space = i
		}
		if n++; n > width && space > start {
			lines = append(lines, l[start:space])
			n -= utf8.RuneCountInString(l[start : space+1])
			start, space = space+1, -1
		}
	}
	return append(lines, l[start:])
}

// amount is how much text there is, for the note at a cut.
func amount(text string) string {
	if n := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1; n > 1 {
		return fmt.Sprintf("%d lines, %s", n, size(int64(len(text))))
	}
	return size(int64(len(text)))
}

// size is an amount of bytes that a person reads.
func size(n int64) string { return trajectory.Size(n) }

// took is a duration that a person reads.
func took(d time.Duration) string { return trajectory.Took(float64(d) / float64(time.Millisecond)) }

// count is a number that may be unknown (below 0).
func count(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// cell is one field of a table.
type cell struct {
	text  string
	style style
	right bool // numbers stand to the right
}

// table prints rows in aligned columns, two spaces apart; cells have to be inert.
func (c *Console) table(w io.Writer, rows [][]cell) error {
	var widths []int
	for _, row := range rows {
		for i, f := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(f.text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, f := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(f.text))
			switch {
			case f.right:
				b.WriteString(pad + c.paint(f.style, f.text))
			case i == len(row)-1:
				b.WriteString(c.paint(f.style, f.text))
			default:
				b.WriteString(c.paint(f.style, f.text) + pad)
			}
		}
		if _, err := io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// heads is the head row of a table; a word that begins with > stands to the right.
func heads(words ...string) []cell {
	row := make([]cell, len(words))
	for i, w := range words {
		text, right := strings.CutPrefix(w, ">")
		row[i] = cell{text, dim, right}
	}
	return row
}

// outcomeStyle colours an outcome word.
func outcomeStyle(outcome string) style {
	switch outcome {
	case "ok":
		return green
	case "client_gone", "refused":
		return yellow
	}
	return red
}
