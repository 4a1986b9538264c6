package proxy

import (
	"fmt"
	"io"
	"net/http"

	"rolltap/capture"
)

// answer translates an answer that came whole.
func (tr *translated) answer() (*http.Response, error) {
	said, err := tr.x.takeWhole()
	if err != nil {
		tr.x.cause = err
		return tr.invalid("the upstream's answer was too long for memory, and could not be read back from its file")
	}
	switch status := tr.head.StatusCode; {
	case status >= 400:
		if tr.given {
			tr.x.lateStatus = status
		}
		return tr.problem(tr.t.Problem(status, said))
	case status >= 300 || status < 200:
		return tr.invalid(fmt.Sprintf("the upstream answered %d, which cannot be translated", status))
	}
	if t := tr.x.taught; t != nil {
		said = t.hider.AppendWhole(nil, said)
		tr.x.said.Release()
		tr.x.said = tr.x.h.keepBody(said)
	}
	if !tr.t.Streamed() {
		body, err := tr.t.Answer(said)
		if err != nil {
			return tr.failed(err)
		}
		return tr.body(http.StatusOK, body), nil
	}
	tr.begin()
	out, err := tr.stream.Whole(said)
	if err != nil {
		return tr.failed(err)
	}
	return tr.advance(out, io.EOF)
}

// hear keeps a piece of an answer that is no stream. What finds neither memory within the budget nor a file is in memory all the same, as without a
// budget: nobody could translate the half of it.
func (x *exchange) hear(p []byte) {
	o := x.h.copyOptions
	o.Max = int64(x.h.wholeAnswer)
	if x.said == nil {
		x.said = capture.NewCopy(o)
		x.said.Expect(x.translated.head.ContentLength)
	}
	had := x.said.Total()
	if x.said.Write(p); !x.said.Truncated() {
		return
	}
	o.Memory, o.Budget = o.Max, nil
	whole := capture.NewCopy(o)
	if _, err := io.CopyN(whole, x.said.NewReader(), had); err != nil {
		whole.Release()
		return
	}
	whole.Write(p)
	x.said.Release()
	x.said = whole
}

// takeWhole is what the upstream said, in one piece, once it is this exchange's turn to make much of it. Nobody keeps anything of it.
func (x *exchange) takeWhole() ([]byte, error) {
	x.brace(int(x.said.Len()))
	said, err := readBack(x.said, x.said.Total())
	if err != nil {
		return nil, fmt.Errorf("read the upstream's answer back: %w", err)
	}
	return said, nil
}
