package page

import (
	"strconv"
	"strings"

	"rolltap/capture"
	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// How much of a text is open at first, in bytes. Answers are what one reads a page for, results and prompts mostly not.
const (
	answerOpen = 8 << 10
	userOpen   = 2 << 10
	resultOpen = 500
	systemOpen = 240
	valueOpen  = 1200
	imageShown = 512 << 10 // the largest image in base64
	wholeMost  = 4 << 20   // the longest text that is held whole
)

// answer writes an item of an answer; t is what is known of a tool call.
func (p *page) answer(at int, it trajectory.Item, t *trajectory.Tool) {
	if it.Kind != trajectory.Called {
		p.item(it, nil)
		return
	}
	p.item(it, func() {
		if t == nil {
			return
		}
		if t.Result >= 0 {
			p.html(` <span class="note">`)
			if ms, known := p.r.Waited(at, t); known {
				p.text(trajectory.Took(ms) + " until the ")
			}
			if t.Bad {
				p.html(`<span class="said">failed</span> `)
			}
			p.html("</span>")
			p.link("result in", t.Result)
		}
		p.link(" started", t.Spawned)
	})
}

// item writes one item; behind is written behind the name of a tool.
func (p *page) item(it trajectory.Item, behind func()) {
	switch it.Kind {
	case trajectory.Called:
		p.html(`<section class="item calls"><h3>calls</h3><div><span class="name">`)
		p.text(it.Name)
		p.html("</span>")
		if behind != nil {
			behind()
		}
		p.arguments(it.Text)
		p.html("</div></section>")
	case trajectory.Returned:
		class, label := "tool", "result"
		if it.Bad {
			class, label = "tool bad", "failed"
		}
		p.open(class, label)
		if it.Name != "" {
			p.html(`<span class="name">`)
			p.text(it.Name)
			p.html("</span> ")
		}
		p.long(it.Text, resultOpen)
		p.close()
	case trajectory.Thought:
		p.open("thinks", "thinks")
		p.long(it.Text, userOpen)
		p.close()
	case trajectory.Attached:
		p.open(roleClass(it.Role), it.Role)
		p.image(it)
		p.close()
	case trajectory.Strange:
		p.open("system", it.Role)
		p.html(`<span class="note">[`)
		p.text(it.Text)
		p.html("]</span>")
		p.close()
	default:
		class, most := roleClass(it.Role), userOpen
		switch it.Role {
		case "system":
			most = systemOpen
		case "assistant":
			most = answerOpen
		}
		if it.Bad {
			class += " bad"
		}
		p.open(class, it.Role)
		p.long(it.Text, most)
		p.close()
	}
}

// roleClass is a class of the page's own for a role, which may be any word.
func roleClass(role string) string {
	switch role {
	case "system", "user", "assistant", "tool":
		return role
	}
	return "system"
}

func (p *page) open(class, label string) {
	p.html(`<section class="item `, class, `"><h3>`)
	p.text(label)
	p.html("</h3><div>")
}

func (p *page) close() { p.html("</div></section>") }

func (p *page) section(class, label, text string) {
	p.open(class, label)
	p.long(text, userOpen)
	p.close()
}

// raw shows a body that is a text.
func (p *page) raw(label, what string, raw []byte) {
	s, _ := capture.Text(raw)
	size, _ := p.rests.Measure(s)
	p.open("warn", label)
	p.html(`<span class="note">`)
	p.text(what + ", " + trajectory.Size(size))
	p.html("</span>")
	p.long(s, resultOpen)
	p.close()
}

// long writes a text: open where it is short, else with its beginning and the rest behind a click.
func (p *page) long(text string, open int) {
	var size int64
	var lines int
	if whole, short := p.rests.Whole(text, wholeMost); short {
		text = strings.Trim(whole, "\n")
		size, lines = int64(len(text)), strings.Count(text, "\n")
	} else {
		size, lines = p.rests.Measure(text)
		text = p.rests.Head(text, TextShown)
	}
	if strings.TrimSpace(text) == "" && size <= TextShown {
		p.html(`<span class="note">(empty)</span>`)
		return
	}
	shown, _ := cut(text, TextShown)
	more := size > int64(len(shown))
	folded := size > int64(open) || lines > open/40+6
	if folded {
		head, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		head, _ = cut(head, gistShown)
		p.html(`<details class="long"><summary>`)
		p.text(head)
		p.html(` <span class="note">… `)
		if lines > 0 {
			p.text(strconv.Itoa(lines+1) + " lines, ")
		}
		p.text(trajectory.Size(size))
		p.html("</span></summary>")
	}
	p.html("<pre>")
	p.text(shown)
	p.html("</pre>")
	if more {
		p.html(`<p class="note">`)
		p.text("… cut here: " + trajectory.Size(size) + " in all, in this call's line of the file")
		p.html("</p>")
	}
	if folded {
		p.html("</details>")
	}
}

// arguments writes the arguments of a tool call, an object as a list of names and values.
func (p *page) arguments(args string) {
	whole, short := p.rests.Whole(args, wholeMost)
	raw := []byte(whole)
	if !short || !jsonx.ValidObject(raw) {
		if strings.TrimSpace(args) != "" {
			p.html(`<div>`)
			p.long(args, valueOpen)
			p.html("</div>")
		}
		return
	}
	n := 0
	for it := jsonx.Object(raw); it.Next(); n++ {
		if n == 0 {
			p.html("<dl>")
		}
		p.html("<dt>")
		p.text(string(jsonx.AppendUnquoted(nil, it.Key())))
		p.html("</dt><dd>")
		value, ok := jsonx.Text(it.Value())
		if !ok {
			value = string(it.Value())
		}
		p.long(value, valueOpen)
		p.html("</dd>")
	}
	if n > 0 {
		p.html("</dl>")
	}
}

// image shows an image that is small and of a kind that cannot do anything, and names any other file.
func (p *page) image(it trajectory.Item) {
	if url := it.ImageURL(p.rests, imageShown); pixels(url) {
		p.html(`<img loading="lazy" alt="" src="`)
		p.text(url)
		p.html(`">`)
	}
	p.html(`<span class="note">[`)
	p.text(it.Text)
	p.html("]</span>")
}

// pixels: a data URL of a raster image.
func pixels(url string) bool {
	for _, media := range []string{"png", "jpeg", "gif", "webp"} {
		data, ok := strings.CutPrefix(url, "data:image/"+media+";base64,")
		if !ok {
			continue
		}
		return strings.Trim(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == "" && data != ""
	}
	return false
}
