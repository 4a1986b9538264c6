package demomodel

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// chat serves POST /v1/chat/completions.
func (m *model) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left while it was sending
	}
	var q request
	p := decode(r, body, &q)
	if p == nil {
		p = q.check(m.o, body)
	}
	var f faults
	if p == nil {
		f, p = readFaults(r, &q)
	}
	if p != nil {
		p.send(w)
		return
	}
	if !pause(r.Context(), f.wait) {
		return
	}
	if f.status != 0 {
		if f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		demanded(f.status).send(w)
		return
	}
	answer, p := m.reply(r, &q)
	if p != nil {
		p.send(w)
		return
	}
	m.running.Add(1)
	defer m.running.Add(-1)
	whole := false
	defer func() { m.count(answer, whole) }() // also when a fault aborts the handler
	if q.Stream {
		whole = m.stream(w, r, answer, f)
	} else {
		whole = m.unary(w, r, answer, f)
	}
}

// reply generates everything that is going to be said.
func (m *model) reply(r *http.Request, q *request) (*reply, *problem) {
	p := &reply{r: q, created: time.Now().Unix(), model: m.o.Model, prompt: m.prompt(q)}
	if len(p.prompt) >= maxModelLen {
		return nil, tooLong(len(p.prompt))
	}
	p.id = "chatcmpl-" + r.Header.Get("X-Request-Id")
	if p.id == "chatcmpl-" {
		p.id += fmt.Sprintf("%016x", rand.Uint64())
	}
	p.seed = mix(0, p.prompt...)
	said := decide(q)
	for i := range q.choices() {
		p.answers = append(p.answers, m.generate(q, said.variant(q, i), len(p.prompt)))
	}
	return p, nil
}

// count keeps the numbers for /metrics.
func (m *model) count(p *reply, whole bool) {
	n, _ := p.totals()
	m.prompts.Add(int64(len(p.prompt)))
	m.generated.Add(int64(n))
	for _, a := range p.answers {
		switch {
		case !whole:
			m.aborted.Add(1)
		case a.finish == "length":
			m.cutShort.Add(1)
		default:
			m.stopped.Add(1)
		}
	}
}

// unary sends the whole answer when its last token is there.
func (m *model) unary(w http.ResponseWriter, r *http.Request, p *reply, f faults) bool {
	steps := 0
	for _, a := range p.answers {
		steps = max(steps, len(a.ids))
	}
	if !pause(r.Context(), time.Duration(steps)*(m.o.TokenDelay+f.slow)) || !pause(r.Context(), f.stall) {
		return false
	}
	body := p.unary()
	switch {
	case f.errorFrame >= 0:
		engineDied().send(w)
		return false
	case f.garbage >= 0:
		body = garbage
	case f.cut >= 0:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	sendJSON(w, http.StatusOK, body)
	return true
}

// garbage is what a broken server says instead of JSON.
var garbage = []byte(`{"id":"chatcmpl-` + "\x00" + `<html>`)

// stream sends the chunks, each in one HTTP chunk of its own. The head goes out
// at once, the first event follows when there is something to say.
func (m *model) stream(w http.ResponseWriter, r *http.Request, p *reply, f faults) bool {
	ctx := r.Context()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()

	var frame bytes.Buffer
	write := func(data []byte) bool {
		frame.Reset()
		frame.WriteString("data: ")
		frame.Write(data)
		frame.WriteString("\n\n")
		// One Write and one Flush make one HTTP chunk, as long as it may be.
		_, err := w.Write(frame.Bytes())
		return err == nil && out.Flush() == nil
	}
	sent := 0
	// before does what a fault wants in front of the next chunk.
	before := func() bool {
		if f.stall != 0 && sent == f.stallAt && !pause(ctx, f.stall) {
			return false
		}
		switch sent {
		case f.cut:
			panic(http.ErrAbortHandler)
		case f.errorFrame:
			_ = write(engineDied().append(nil, true)) && write([]byte("[DONE]"))
			return false
		case f.garbage:
			return write(garbage)
		}
		return true
	}
	send := func(data []byte) bool {
		if !before() {
			return false
		}
		sent++
		return write(data)
	}
	step := func() bool { return pause(ctx, m.o.TokenDelay+f.slow) }
	if !newStreamer(p).run(step, send) {
		return false
	}
	// A fault may be asked for behind the last chunk.
	if !before() {
		return false
	}
	return f.noDone || write([]byte("[DONE]"))
}
