package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rolltap/capture"
)

const (
	// holdBytes is the largest request body that is held before it is sent on, so that the transport can repeat a request
	// that it has not begun to write. A larger one streams.
	holdBytes = 1 << 20
	// uploadSilence is the longest that a client may stop sending inside its request body.
	uploadSilence = time.Minute
)

// upload is the request body on its way: read from the client, copied as it passes. It is read by the exchange's
// goroutine while the body is being held, then by the transport's.
type upload struct {
	x    *exchange
	body io.ReadCloser
	rc   *http.ResponseController
	copy *capture.Copy // nil: nobody keeps it
	next time.Duration // when the read deadline has to be moved again
	rest []byte        // read, and not kept by the copy

	reading sync.Mutex  // held by the read that is going on
	stopped atomic.Bool // the exchange is over
}

func (x *exchange) newUpload(kept *capture.Copy) *upload {
	return &upload{x: x, body: x.in.Body, rc: x.out.control, copy: kept, next: x.h.uploadSilence / 8}
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	return u.read(p, false)
}

// read reads once, into the copy's own room or not.
func (u *upload) read(p []byte, room bool) (int, error) {
	u.reading.Lock()
	defer u.reading.Unlock()
	if u.stopped.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if now := u.x.elapsed(); now >= u.next {
		// Without a deadline a client that stops inside its body would be waited for without end.
		u.rc.SetReadDeadline(time.Now().Add(u.x.h.uploadSilence))
		u.next = now + u.x.h.uploadSilence/8
	}
	n, err := u.body.Read(p)
	if n > 0 {
		switch { // before anybody is told of it
		case room:
			u.copy.Wrote(n)
		case u.copy != nil:
			u.copy.Write(p[:n])
		}
		if u.x.requestBytes.Add(int64(n)) == u.x.in.ContentLength {
			u.x.uploaded.Store(true) // its end may be looked for only when the answer is here already
		}
		u.x.watch.progress()
	}
	switch {
	case err == nil, u.stopped.Load():
	case errors.Is(err, io.EOF):
		u.rc.SetReadDeadline(time.Time{}) // behind the body the server watches for the client leaving
		u.x.uploaded.Store(true)
	default: // the deadline stays: the server tries to read the rest before it closes the connection
		u.x.uploadFailed(err)
	}
	return n, err
}

func (u *upload) Close() error { return u.body.Close() }

// stop ends the upload with its exchange. The server reads on for the rest of a body, so that the client can read its
// answer; it would break off a read that is still going on, and the deadline with it, and then wait without end.
func (u *upload) stop(linger time.Duration) {
	u.stopped.Store(true)
	u.rc.SetReadDeadline(time.Unix(1, 0))
	u.reading.Lock() // behind it nothing reads
	defer u.reading.Unlock()
	u.rc.SetReadDeadline(time.Now().Add(linger))
}

// openBody prepares to read the request body and to keep a copy of it; nil: there is none.
func (x *exchange) openBody() *upload {
	r := x.in
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	o := x.h.copyOptions
	o.Max = x.maxRequest()
	o.Reuse = r.ContentLength > lendFrom
	x.request = capture.NewCopy(o)
	x.request.Expect(r.ContentLength)
	return x.newUpload(x.request)
}

// maxRequest is how much of a request is kept.
func (x *exchange) maxRequest() int64 {
	return min(x.h.copyOptions.Max, int64(x.h.cfg.MaxRequestBytes))
}

// takeBody holds the request body when it fits, else prepares it to stream behind what was read of it. It reports an
// error when the client's body cannot be read.
func (x *exchange) takeBody() error {
	r := x.in
	up := x.openBody()
	if up == nil {
		return nil
	}
	began := x.elapsed()
	defer func() { x.waited += x.elapsed() - began }()
	hold := min(holdBytes, x.maxRequest())
	// Trailers arrive behind a chunked body and can only follow one.
	if r.ContentLength <= hold && len(r.Trailer) == 0 {
		var err error
		if x.held, err = up.hold(hold); x.held || err != nil {
			return err
		}
	}
	// The server may otherwise close the body under the transport once the answer begins, which cuts the answer.
	if err := up.rc.EnableFullDuplex(); err != nil {
		return err
	}
	x.upload = up
	return nil
}

// hold reads the body into the copy and reports whether all of it is there. The end has to be seen, not only counted:
// behind it the server watches for the client leaving.
func (u *upload) hold(limit int64) (bool, error) {
	var buf []byte // for what the copy has no room for
	for u.x.requestBytes.Load() <= limit {
		var n int
		var err error
		if room := u.copy.Room(); len(room) > 0 {
			n, err = u.read(room, true)
		} else {
			if buf == nil {
				buf = u.x.h.buffers.Get()
				defer u.x.h.buffers.Put(buf)
			}
			n, err = u.Read(buf)
		}
		if kept := u.copy.Len(); kept < u.x.requestBytes.Load() {
			// The copy could not take it all, a full spool folder perhaps. The client's bytes are not to suffer.
			u.rest = bytes.Clone(buf[n-int(u.x.requestBytes.Load()-kept) : n])
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// inBody is the body that ReverseProxy is given.
func (x *exchange) inBody() io.ReadCloser {
	switch {
	case x.held: // outBody has it
		return http.NoBody
	case x.upload == nil:
		return http.NoBody
	case x.requestBytes.Load() == 0:
		return x.upload
	}
	return joinedBody{io.MultiReader(x.reader(x.request), bytes.NewReader(x.upload.rest), x.upload), x.upload}
}

// reader reads what a copy of a request holds now. The transport looks for the end of a body that it has sent whole at
// its leisure, when the answer may have arrived and the copy may be gone with its record: that must not look like a broken
// request, since the transport then breaks the answer as well.
func (x *exchange) reader(c *capture.Copy) io.ReadCloser {
	if c.Len() > lendFrom {
		if b, ok := c.Lend(); ok {
			return &lentBody{kept: c, rest: b, readers: 1}
		}
	}
	if b, ok := c.Bytes(); ok {
		return io.NopCloser(bytes.NewReader(b))
	}
	return io.NopCloser(io.LimitReader(&fileReader{x.ctx, c.NewReader()}, c.Len()))
}

// fileReader reads a copy in a file. An upstream may answer before it has read all of the request; when the copy goes with
// the record of that answer, the transport is kept waiting until the exchange is over.
type fileReader struct {
	ctx context.Context
	r   io.Reader
}

func (f *fileReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, os.ErrClosed) {
		<-f.ctx.Done()
	}
	return n, err
}

// onceBody is the body of a request that has none: with it the transport cannot tell that it could send the request again.
type onceBody struct{}

func (onceBody) Read([]byte) (int, error) { return 0, io.EOF }
func (onceBody) Close() error             { return nil }

// closeBehind lets the connection end with an answer that comes before its request was read to the end: what is left of the
// request must not pass for the next one.
func (x *exchange) closeBehind() {
	if x.upload != nil && !x.uploaded.Load() {
		x.out.Header().Set("Connection", "close")
	}
}

// outBody finishes the upstream request's body.
func (x *exchange) outBody(out *http.Request) {
	// The transport takes these headers for leave to send again what the upstream may have read. It knows them in their
	// canonical spelling only; to the upstream it makes no difference.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := out.Header[name]; ok {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = v
		}
	}
	switch {
	case x.sent != nil:
		out.TransferEncoding, out.Trailer = nil, nil
		x.setBody(out, x.sent)
		return
	case x.model(), x.held:
	case out.Body != nil && out.Body != http.NoBody:
		out.Trailer = x.in.Trailer // filled by the server when the body has been read to its end
		return
	case out.Method == http.MethodGet, out.Method == http.MethodHead, out.Method == http.MethodOptions:
		// The transport repeats these on its own when a connection breaks before the answer, read or not.
		out.Body = onceBody{}
		return
	}
	if x.held {
		x.setBody(out, x.request)
	}
	out.Trailer = x.in.Trailer // filled by the server when the body has been read to its end
}

// setBody lets the upstream's request have what a copy holds, which is all of it. ReverseProxy wraps the body that it is given; the transport is to see
// one that is in memory: head and body are then one write.
func (x *exchange) setBody(out *http.Request, c *capture.Copy) {
	out.Body, out.ContentLength = x.reader(c), c.Len()
	out.GetBody = func() (io.ReadCloser, error) { return x.reader(c), nil }
}

// joinedBody is what was read of a body already, and its rest.
type joinedBody struct {
	io.Reader
	io.Closer
}

// bufferPool lends the buffers that bodies are copied through; ReverseProxy takes its own from it as well.
type bufferPool struct{ pool sync.Pool }

func newBufferPool(size int) *bufferPool {
	return &bufferPool{sync.Pool{New: func() any { b := make([]byte, size); return &b }}}
}

func (p *bufferPool) Get() []byte  { return *p.pool.Get().(*[]byte) }
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
