package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// progress is one line that tells a person how far long work has come. It says nothing until a second has passed, and nothing
// where nobody watches. It is used by one goroutine.
type progress struct {
	w     io.Writer // nil: nobody watches
	what  string
	all   int64 // bytes; 0: unknown
	done  int64
	began time.Time
	last  time.Time
	width int // of what stands there
}

func (c *Console) progress(what string, all int64) *progress {
	return &progress{w: c.Watched, what: what, all: all, began: time.Now()}
}

// add counts bytes that are done.
func (p *progress) add(n int64) {
	p.done += n
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.began) < time.Second || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s  %s", p.what, size(p.done))
	if p.all > 0 {
		const cells = 30
		share := min(float64(p.done)/float64(p.all), 1)
		full := int(share * cells)
		text = fmt.Sprintf("%s  %s%s  %3.0f %%  %s of %s", p.what, strings.Repeat("█", full), strings.Repeat("░", cells-full), share*100, size(p.done), size(p.all))
		if left := time.Duration(float64(now.Sub(p.began)) * (1/max(share, 0.001) - 1)); share > 0.02 {
			text += ", " + took(left.Round(time.Second)) + " left"
		}
	}
	p.show(text)
}

func (p *progress) show(text string) {
	n := utf8.RuneCountInString(text)
	fmt.Fprint(p.w, "\r"+text+strings.Repeat(" ", max(0, p.width-n)))
	p.width = n
}

// end takes the line away.
func (p *progress) end() {
	if p.width > 0 {
		p.show("")
		fmt.Fprint(p.w, "\r")
		p.width = 0
	}
}
