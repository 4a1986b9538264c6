package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// gistShown is how many bytes of an answer stand in the line of a closed call.
const gistShown = 180

// call writes one call: what its request brings that is new, and its answer.
func (p *page) call(at int, c *derive.Call) error {
	k := &p.r.Calls[at]
	p.rests = c.Rests
	asked, answered := p.r.News(at, c)
	class := ""
	if k.Role != trajectory.RoleTurn && k.Role != trajectory.RoleFailed {
		class = " aside"
	}
	wrong := k.Outcome != "ok" || c.Own.Losses != nil || c.Own.Truncated != nil || len(p.gaps[at]) > 0
	if wrong {
		class += " wrong"
	}
	open := ""
	if k.Role == trajectory.RoleTurn {
		open = " open"
	}
	p.html(`<details class="call`, class, `" id="c`, strconv.Itoa(k.Index+1), `"`, open, ">")
	p.summary(at, c, answered)
	p.tools(c)
	for _, it := range asked {
		p.item(it, nil)
		p.drain()
	}
	if k.Long {
		p.section("warn", "long", "only the beginning of this call is shown; all of it is in this call's line of the file")
	}
	if c.RequestRaw != nil {
		p.raw("request", "a request that is no JSON object", c.RequestRaw)
	}
	tool := 0
	for _, it := range answered {
		var t *trajectory.Tool
		if it.Kind == trajectory.Called {
			if tool < len(k.Tools) {
				t = &k.Tools[tool]
			}
			tool++
		}
		p.answer(at, it, t)
		p.drain()
	}
	p.ending(at, c, len(answered) > 0)
	p.html("</details>\n")
	p.flush()
	return nil
}

func word(raw []byte) string {
	s, _ := capture.Text(raw)
	return capture.Brief(s)
}

func (p *page) tag(class, text string) {
	p.html(`<span class="tag`, class, `">`)
	p.text(text)
	p.html("</span>")
}

func (p *page) summary(at int, c *derive.Call, answered []trajectory.Item) {
	k := &p.r.Calls[at]
	p.html("<summary><b>call ", strconv.Itoa(k.Index+1), "</b>")
	switch k.Role {
	case trajectory.RoleTurn:
		p.tag(" turn", "turn "+strconv.Itoa(k.Turn))
	case trajectory.RoleFailed:
		p.tag(" bad", "failed")
	case trajectory.RoleCompaction:
		p.tag(" compaction", "compaction")
	case trajectory.RoleSide:
		p.tag("", string(k.Side))
	default:
		p.tag(" warn", string(k.Role))
	}
	if len(p.r.Threads) > 1 {
		p.tag(" agent", p.r.Name(k.Thread))
	}
	if k.Branch >= 0 && p.r.Branches[k.Branch].First == at && len(p.r.Branches) > 1 {
		b := &p.r.Branches[k.Branch]
		p.tag(" compaction", fmt.Sprintf("branch %d: %s", k.Branch+1, b.Cause))
		p.link("from", b.From)
	}
	if k.Same >= 0 {
		p.link("counts instead:", k.Same)
	} else if k.Parent >= 0 && k.Parent != at-1 {
		p.link("after", k.Parent)
	}
	dialect := word(c.Dialect)
	if c.Own.Upstream != "" && c.Own.Upstream != dialect {
		dialect += " → " + c.Own.Upstream
	}
	p.html(`<span class="dim">`)
	p.text(dialect + " · " + word(c.Model))
	p.html("</span>")
	if k.Outcome != "ok" {
		p.tag(" bad", k.Outcome)
	}
	if c.Own.Finish != "" {
		class := ""
		if c.Own.Finish == "length" || c.Own.Finish == "content_filter" {
			class = " warn"
		}
		p.tag(class, c.Own.Finish)
	}
	u := c.Used()
	if u.Prompt >= 0 || u.Completion >= 0 {
		p.html(`<span class="dim" title="prompt tokens → completion tokens">`)
		p.text(count(u.Prompt) + " → " + count(u.Completion) + " tokens")
		if u.Cached > 0 {
			p.text(", " + count(u.Cached) + " cached")
		}
		if u.Reasoning > 0 {
			p.text(", " + count(u.Reasoning) + " reasoning")
		}
		p.html("</span>")
	}
	p.timing(at, c)
	p.html(`<span class="gist">`)
	p.text(p.gistOf(answered))
	p.html("</span></summary>")
}

// link names another call.
func (p *page) link(what string, at int) {
	if at < 0 {
		return
	}
	n := strconv.Itoa(p.r.Calls[at].Index + 1)
	p.html(`<a class="note" href="#c`, n, `">`)
	p.text(what + " call " + n)
	p.html("</a>")
}

// timing is how long the call took: until the first token, and in all, beside the longest one.
func (p *page) timing(at int, c *derive.Call) {
	k, t := &p.r.Calls[at], p.times[at]
	p.html(`<span class="time dim">`)
	if k.Started > 0 {
		when := p.instant(k.Started)
		layout := time.TimeOnly
		if day := when.Format(time.DateOnly); day != p.day {
			p.day, layout = day, time.DateTime
		}
		p.text(when.Format(layout))
	}
	if t >= 0 {
		p.html(`<span>`)
		p.text(trajectory.Took(t))
		first, streamed := c.FirstToken()
		if streamed {
			p.text(", first " + trajectory.Took(first))
		}
		p.html("</span>")
		if p.slowest > 0 {
			p.html(`<i><s style="width:`, percent(t/p.slowest), `"></s>`)
			if streamed {
				p.html(`<s style="width:`, percent(min(first, t)/p.slowest), `" title="until the first token"></s>`)
			}
			p.html("</i>")
		}
	}
	p.html("</span>")
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + "%" }

// gistOf is an answer in one line.
func (p *page) gistOf(items []trajectory.Item) string {
	var parts []string
	for _, it := range items {
		if len(parts) > gistShown {
			break
		}
		switch it.Kind {
		case trajectory.Said:
			s := p.rests.Head(it.Text, gistShown)
			parts = append(parts, strings.Join(strings.Fields(s), " "))
		case trajectory.Called:
			s := p.rests.Head(it.Text, gistShown)
			parts = append(parts, capture.Brief(it.Name)+"("+strings.Join(strings.Fields(s), " ")+")")
		}
	}
	s, more := cut(strings.Join(parts, " · "), gistShown)
	if more {
		s += "…"
	}
	return s
}

// tools names what a request offers.
func (p *page) tools(c *derive.Call) {
	var names []string
	for it := jsonx.Array(jsonx.Get(c.Request, "tools")); it.Next(); {
		name := ""
		for _, in := range [][]byte{it.Value(), jsonx.Get(it.Value(), "function"), jsonx.Get(it.Value(), "custom")} {
			if name == "" {
				name = word(jsonx.Get(in, "name"))
			}
		}
		if name == "" {
			name = word(jsonx.Get(it.Value(), "type"))
		}
		names = append(names, name)
	}
	all := strings.Join(names, ", ")
	if all == "" || all == p.offered {
		return
	}
	p.offered = all
	p.html(`<section class="item system"><h3>tools</h3><div>`)
	p.long(fmt.Sprintf("%d: %s", len(names), all), 200)
	p.html("</div></section>")
}

// ending says what went wrong, or is not as one would think.
func (p *page) ending(at int, c *derive.Call, answered bool) {
	k := &p.r.Calls[at]
	if k.Outcome != "ok" || c.Category != nil {
		words := []string{k.Outcome}
		if s := word(c.Category); s != "" && s != k.Outcome {
			words = append(words, s)
		}
		if c.Status != nil {
			words = append(words, "status "+string(c.Status))
		}
		if s := word(c.LocalReason); s != "" {
			words = append(words, "answered by rolltap: "+s)
		}
		line := strings.Join(words, ", ")
		if s := trajectory.ErrorText(c.Response); s != "" {
			line += "\n" + s
		}
		class := "bad"
		if k.Outcome == "ok" {
			class = "warn"
		}
		p.section(class, "error", line)
	}
	if !answered && c.ResponseRaw != nil {
		p.raw("answer", "as it came", c.ResponseRaw)
	}
	for it := jsonx.Array(c.Own.Losses); it.Next(); {
		p.section("warn", "lost", word(jsonx.Get(it.Value(), "path"))+" ("+word(jsonx.Get(it.Value(), "reason"))+")")
	}
	if c.Own.Truncated != nil {
		var cut []string
		for it := jsonx.Array(c.Own.Truncated); it.Next(); {
			cut = append(cut, word(it.Value()))
		}
		p.section("warn", "cut", "only the beginning was kept of: "+strings.Join(cut, ", "))
	}
	for _, g := range p.gaps[at] {
		text := g.Code
		if g.Detail != "" {
			text += ": " + g.Detail
		}
		p.section("warn", "gap", text)
	}
}
