package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the style and the script
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"time"

	"rolltap/capture"
	"rolltap/capture/trajectory"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// Options say what a page is made of.
type Options struct {
	Dir  string
	Zone *time.Location // times are shown in it; nil is UTC
}

// page is one page in the making. It is used by one goroutine.
type page struct {
	w       *bufio.Writer
	buf     []byte
	r       *trajectory.Rollout
	rests   *capture.Rests // of the line in progress
	o       Options
	gaps    map[int][]trajectory.Gap // by call
	slowest float64                  // the longest call in milliseconds
	times   []float64                // of each call in milliseconds; below 0: unknown
	day     string
	offered string // the tools of the call before
}

// Write writes the page of a rollout that was read from the folder of o.
func Write(w io.Writer, r *trajectory.Rollout, o Options) error {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	p := &page{w: bufio.NewWriterSize(w, 256<<10), r: r, o: o, gaps: map[int][]trajectory.Gap{}, times: make([]float64, len(r.Calls))}
	for _, g := range r.Gaps {
		p.gaps[g.Call] = append(p.gaps[g.Call], g)
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		p.times[i] = -1
		if c.Completed >= c.Started && c.Started > 0 {
			p.times[i] = (c.Completed - c.Started) * 1000
			p.slowest = max(p.slowest, p.times[i])
		}
	}
	p.head()
	if err := r.Again(o.Dir, p.call); err != nil {
		return err
	}
	p.foot()
	p.flush()
	return p.w.Flush()
}

// drain keeps a call with much in it from being held whole.
func (p *page) drain() {
	if len(p.buf) > 1<<20 {
		p.flush()
	}
}

func (p *page) flush() {
	p.w.Write(p.buf) // an error comes with Flush
	p.buf = p.buf[:0]
}

// html appends what is the page's own.
func (p *page) html(parts ...string) {
	for _, s := range parts {
		p.buf = append(p.buf, s...)
	}
}

// text appends what is not.
func (p *page) text(s string) { p.buf = appendText(p.buf, s) }

func (p *page) textf(format string, args ...any) { p.text(fmt.Sprintf(format, args...)) }

// hashed is how a policy names a style or a script.
func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) head() {
	p.html(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src `, hashed(script), `; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer">
<title>`)
	p.text(p.r.ID)
	p.html(`</title><style>`, style, "</style></head>\n<body><header><h1>")
	p.text(p.r.ID)
	p.html(`</h1><div class="chips">`)
	p.chips()
	p.html("</div>")
	for _, g := range p.gaps[-1] {
		p.html(`<div class="note">`)
		p.text(g.Code + ": " + g.Detail)
		p.html("</div>")
	}
	p.html(`</header><nav><div><button data-act="open">open all</button> <button data-act="close">close all</button> `,
		`<button data-act="turns" aria-pressed="false">turns only</button> <button data-act="bad" aria-pressed="false">trouble only</button> <span class="note">j and k go from call to call</span>`)
	p.lanes()
	p.html("</div></nav><main>\n")
	p.flush()
}

func (p *page) chip(class, text string) {
	p.html(`<span class="chip`, class, `">`)
	p.text(text)
	p.html("</span>")
}

// chips are what a rollout adds up to.
func (p *page) chips() {
	r := p.r
	p.chip("", plural(len(r.Calls), "call"))
	p.chip("", plural(r.Count(trajectory.RoleTurn), "turn"))
	var from, to float64
	bad := 0
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Started > 0 && (from == 0 || c.Started < from) {
			from = c.Started
		}
		to = max(to, c.Completed)
		if c.Outcome != "ok" {
			bad++
		}
	}
	if from > 0 && to >= from {
		p.chip("", p.instant(from).Format("2006-01-02 15:04:05 MST"))
		p.chip("", trajectory.Took((to-from)*1000))
	}
	for _, role := range []trajectory.Role{trajectory.RoleRetry, trajectory.RoleDropped, trajectory.RoleCompaction, trajectory.RoleSide} {
		if n := r.Count(role); n > 0 {
			p.chip(" warn", strconv.Itoa(n)+" "+string(role))
		}
	}
	if len(r.Branches) > 1 {
		p.chip("", plural(len(r.Branches), "branch"))
	}
	for _, n := range []struct {
		n    int
		what string
	}{{bad, "call that went wrong"}, {r.Found.Damaged, "damaged line"}} {
		if n.n > 0 {
			p.chip(" bad", plural(n.n, n.what))
		}
	}
	if r.Found.Marked {
		p.chip(" bad", "incomplete: a record was late or lost")
	}
}

// plural counts things.
func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "branch":
		return strconv.Itoa(n) + " branches"
	case what == "call that went wrong":
		return strconv.Itoa(n) + " calls that went wrong"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func (p *page) instant(unix float64) time.Time {
	if unix > 1e11 {
		unix = 0
	}
	return time.UnixMicro(int64(unix * 1e6)).In(p.o.Zone)
}

// lanes is the time of all calls, a lane for each thread.
func (p *page) lanes() {
	var from, to float64
	for i := range p.r.Calls {
		if c := &p.r.Calls[i]; c.Started > 0 {
			if from == 0 || c.Started < from {
				from = c.Started
			}
			to = max(to, c.Completed)
		}
	}
	if to <= from {
		return
	}
	share := func(t float64) string { return strconv.FormatFloat((t-from)/(to-from)*100, 'f', 3, 64) }
	for th := range p.r.Threads {
		if th == lanesShown {
			p.html(`<div class="note">`)
			p.textf("and %d agents more", len(p.r.Threads)-th)
			p.html("</div>")
			break
		}
		p.html(`<div class="lane"><b>`)
		p.text(p.r.Name(th))
		p.html("</b><div>")
		for i := range p.r.Calls {
			c := &p.r.Calls[i]
			if c.Thread != th || c.Started == 0 {
				continue
			}
			class := string(c.Role)
			if c.Outcome != "ok" {
				class = "bad"
			}
			end := max(c.Completed, c.Started)
			p.html(`<a class="`, class, `" href="#c`, strconv.Itoa(c.Index+1), `" style="left:`, share(c.Started), "%;width:",
				strconv.FormatFloat((end-c.Started)/(to-from)*100, 'f', 3, 64), `%" title="`)
			p.textf("call %d, %s, %s", c.Index+1, c.Role, trajectory.Took((end-c.Started)*1000))
			p.html(`"></a>`)
		}
		p.html("</div></div>")
	}
}

// lanesShown is how many threads have a lane.
const lanesShown = 8

func (p *page) foot() {
	if p.r.Found.Damaged > 0 {
		p.html(`<p class="note">`)
		p.text(plural(p.r.Found.Damaged, "damaged line") + " of the file could not be read; rolltap verify names them.")
		p.html("</p>")
	}
	p.html("</main>\n<script>", script, "</script></body></html>\n")
}
