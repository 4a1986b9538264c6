package proxy

import (
	"net/http"
	"sync/atomic"
)

// answer is the client's side of an exchange: what was sent of the answer, and whether that failed. ReverseProxy may flush it from a
// goroutine of its own; it does not write at the same time.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController // of that
	conn    *progressConn            // nil when it is another kind of connection

	status int // of the final head, 0: none was sent
	bytes  int64
	failed error // the client could not be written to

	flushes bool        // each write is flushed
	flushed bool        // guarded by ReverseProxy's lock around writes and flushes
	last    atomic.Bool // what is written next is the end of the body
}

func newAnswer(w http.ResponseWriter, r *http.Request) answer {
	conn, _ := r.Context().Value(connKey{}).(*progressConn)
	return answer{ResponseWriter: w, control: http.NewResponseController(w), conn: conn}
}

// Unwrap lets http.ResponseController find flush, hijack and deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// FlushError is what http.ResponseController calls. The end of a body that was begun is not flushed: in a moment the server
// writes it together with what tells the end of the answer. Before that a flush decides how the length is told.
func (a *answer) FlushError() error {
	if a.flushed && a.last.Load() {
		return nil
	}
	a.flushed = true
	return a.control.Flush()
}

func (a *answer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// gatherFrom is the size from which the server may write something in pieces; it buffers less.
const gatherFrom = 2 << 10

func (a *answer) Write(p []byte) (int, error) {
	var n int
	var err error
	if len(p) > gatherFrom && a.conn != nil {
		n, err = a.writeGathered(p)
	} else {
		n, err = a.ResponseWriter.Write(p)
	}
	a.bytes += int64(n)
	if err != nil && a.failed == nil {
		a.failed = err
	}
	return n, err
}

// writeGathered writes p, and flushes it where ReverseProxy is about to do that, in one system call.
func (a *answer) writeGathered(p []byte) (int, error) {
	a.conn.gather()
	n, err := a.ResponseWriter.Write(p)
	if err == nil && a.flushes {
		err = a.FlushError()
	}
	unsent, sendErr := a.conn.send()
	if err == nil {
		err = sendErr
	}
	return max(0, n-unsent), err
}
