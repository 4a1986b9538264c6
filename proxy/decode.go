package proxy

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/dialect"
)

// errCoding says that a content coding is not one that copies can be decoded from.
var errCoding = errors.New("unknown content coding")

// maxWindow bounds the memory of one zstd decoder; frames that need more are left encoded.
const maxWindow = 8 << 20

// contentCoding is the coding of a body, "" for none. More than one coding on one body is told as it stands, which no
// decoder knows.
func contentCoding(h http.Header) string {
	c := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ",")))
	if c == "identity" {
		return ""
	}
	return c
}

// decodable reports whether newDecoder knows a coding.
func decodable(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "deflate", "zstd":
		return true
	}
	return false
}

// newDecoder reads a body under a content coding. The caller closes it.
func newDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return zlib.NewReader(r)
	case "zstd":
		// One goroutine: the reader that asks is the one that decodes, so that a starved decoder is really idle.
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%w %q", errCoding, coding)
}

// plainBody is the body of an answer without the content coding that it was not asked to have.
func plainBody(res *http.Response) (io.ReadCloser, error) {
	coding := contentCoding(res.Header)
	if coding == "" {
		return res.Body, nil
	}
	src := &codedBody{Reader: res.Body}
	d, err := newDecoder(coding, src)
	if err != nil {
		return nil, src.explain(err)
	}
	return &decodedBody{d, src}, nil
}

// errUndecodable says that a body came, and is not what its content coding says.
var errUndecodable = errors.New("the upstream's answer cannot be decoded")

// codedBody is what a decoder reads, and knows whether its errors are about that.
type codedBody struct {
	io.Reader
	broke bool
}

func (b *codedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.broke = err != nil && err != io.EOF
	return n, err
}

// explain tells a body that cannot be decoded from one that broke off.
func (b *codedBody) explain(err error) error {
	if b.broke || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("%w: %w", errUndecodable, err)
}

// decodedBody is a decoder whose errors are explained.
type decodedBody struct {
	io.ReadCloser
	src *codedBody
}

func (b *decodedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.src.explain(err)
	}
	return n, err
}

// plain takes a content coding that the upstream was not asked for off an answer that has to be read on its way, and reports whether its body
// is one without.
func (x *exchange) plain(res *http.Response) bool {
	if x.coding == "" {
		return true
	}
	if x.taught == nil || !decodable(x.coding) {
		return false
	}
	res.Body = &plainBodyOnRead{src: res.Body, coding: x.coding}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	res.Header.Del("Content-Encoding")
	x.coding = ""
	return true
}

// plainBodyOnRead decodes a body. The head of the coding is read with the first read, since who answers is not to wait for it.
type plainBodyOnRead struct {
	src    io.ReadCloser
	coding string
	d      io.ReadCloser
}

func (b *plainBodyOnRead) Read(p []byte) (int, error) {
	if b.d == nil {
		var err error
		if b.d, err = newDecoder(b.coding, b.src); err != nil {
			return 0, err
		}
	}
	return b.d.Read(p)
}

func (b *plainBodyOnRead) Close() error {
	if b.d != nil {
		b.d.Close() // it says nothing that a read has not said
	}
	return b.src.Close()
}

// decodeCopy is the decoded form of an encoded copy. What cannot be decoded is kept as it is: the record then has its
// text. The result never holds more than the options allow, however small a bomb was.
func decodeCopy(c *capture.Copy, coding string, o capture.CopyOptions) *capture.Copy {
	if coding == "" || c.Total() == 0 || c.Truncated() {
		return c
	}
	src := c.NewReader()
	defer src.Close()
	d, err := newDecoder(coding, src)
	if err != nil {
		return c
	}
	defer d.Close()
	plain := capture.NewCopy(o)
	// One byte more than is kept makes the copy say that it is cut.
	if _, err := io.Copy(plain, io.LimitReader(d, o.Max+1)); err != nil {
		plain.Release()
		return c
	}
	c.Release()
	return plain
}

// inflater follows an event stream under a content coding: it decodes a copy of what passes and tells whether the end is
// in it. The decoder pulls and the gate pushes, so the decoder runs in a goroutine of its own, owned by the gate; push
// returns when that goroutine waits for more, so the two never run at once.
type inflater struct {
	coding string
	obs    *rewrite.Observer
	sink   func(plain []byte, p rewrite.Progress)

	chunks  chan []byte   // to the decoder
	starved chan struct{} // from the decoder: everything pushed is decoded; closed when it has ended

	verdict dialect.Verdict
	fault   any     // what the decoder's goroutine panicked with
	blind   bool    // undecodable: the end cannot be told
	last    [4]byte // last bytes pushed
	seen    int64   // bytes decoded
	safe    int64   // of them, those that are whole events
}

func newInflater(coding string, obs *rewrite.Observer, sink func([]byte, rewrite.Progress)) *inflater {
	f := &inflater{coding: coding, obs: obs, sink: sink,
		chunks: make(chan []byte), starved: make(chan struct{})}
	go f.run(&starvingReader{chunks: f.chunks, starved: f.starved})
	<-f.starved
	return f
}

// push decodes one chunk.
func (f *inflater) push(p []byte) {
	for _, b := range p[max(0, len(p)-len(f.last)):] {
		copy(f.last[:], f.last[1:])
		f.last[len(f.last)-1] = b
	}
	f.chunks <- p
	<-f.starved
	f.raise()
}

// raise goes on with a panic of the decoder's goroutine in that of the exchange: there it ends the exchange, not the program.
func (f *inflater) raise() {
	if f.fault != nil {
		panic(f.fault)
	}
}

// finish tells the decoder that no more comes and lets the observer see the end.
func (f *inflater) finish() {
	f.close()
	f.raise()
	if f.verdict == dialect.None {
		p := f.obs.Finish()
		f.verdict = p.Verdict
		f.sink(nil, p)
	}
}

// close ends the decoder and waits for it. It may be called again.
func (f *inflater) close() {
	if f.chunks != nil {
		close(f.chunks)
		f.chunks = nil
		for range f.starved {
			// The decoder may say once more that it is starved before it sees the end.
		}
	}
}

// settled reports whether everything that the pushed bytes can be decoded to is whole events, none of them terminal.
// A gzip reader of the client's may be able to read on inside a block where ours waits for its end, so only a chunk that
// ends with a flush is settled (RFC 1951 3.2.4: an empty stored block, 00 00 FF FF).
func (f *inflater) settled() bool {
	if f.blind || f.verdict != dialect.None || f.safe < f.seen {
		return false
	}
	return f.coding == "zstd" || bytes.Equal(f.last[:], []byte{0, 0, 0xff, 0xff})
}

func (f *inflater) run(in *starvingReader) {
	defer close(f.starved)
	err := f.decode(in)
	if in.closed {
		return
	}
	f.blind = !errors.Is(err, io.EOF)
	f.starved <- struct{}{}
	for range in.chunks {
		f.starved <- struct{}{} // whoever pushes must not wait, though nothing decodes any more
	}
}

// decode decodes until the input ends or cannot be decoded.
func (f *inflater) decode(in io.Reader) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			f.fault, err = fmt.Sprintf("%v\n%s", fault, debug.Stack()), errors.New("the decoder panicked")
		}
	}()
	d, err := newDecoder(f.coding, in)
	if err != nil {
		return err
	}
	defer d.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := d.Read(buf)
		if n > 0 {
			f.decoded(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

func (f *inflater) decoded(p []byte) {
	f.seen += int64(len(p))
	prog := rewrite.Progress{}
	if f.verdict == dialect.None {
		prog = f.obs.Push(p)
		f.verdict, f.safe = prog.Verdict, prog.Safe
		f.blind = f.blind || prog.Blind
	}
	f.sink(p, prog)
}

// starvingReader is the decoder's input: it says when everything it was given has been read.
type starvingReader struct {
	chunks  <-chan []byte
	starved chan<- struct{}
	cur     []byte
	closed  bool // no more comes
}

func (r *starvingReader) Read(p []byte) (int, error) {
	for len(r.cur) == 0 {
		r.starved <- struct{}{}
		chunk, ok := <-r.chunks
		if !ok {
			r.closed = true
			return 0, io.EOF
		}
		r.cur = chunk
	}
	n := copy(p, r.cur)
	r.cur = r.cur[n:]
	return n, nil
}
