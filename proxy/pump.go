package proxy

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// chunk is one thing that the pump brings: the head, or bytes and what the body said behind them.
type chunk struct {
	res  *http.Response
	data []byte
	err  error
}

// pump makes the upstream's side of a translated round trip in a goroutine of its own, since whoever keeps a client alive cannot wait for
// the upstream. It waits for a slot, asks the upstream and reads its answer, one chunk ahead. Its owner takes what it brings from full,
// gives the buffers back and stops it.
type pump struct {
	x    *exchange
	full chan chunk
	free chan []byte
	done chan struct{} // closed when the goroutine has ended

	// Of the goroutine, until it brings its first chunk or ends.
	slot      bool
	attempted bool
	waited    time.Duration
	sentAt    time.Duration

	drain  chan struct{} // closed by the owner: nothing is brought any more
	joined bool          // of the owner
	told   bool          // of the owner
}

func newPump(x *exchange) *pump {
	p := &pump{x: x, full: make(chan chunk), free: make(chan []byte, 2), done: make(chan struct{}), drain: make(chan struct{})}
	for range cap(p.free) {
		p.free <- x.h.small.Get()
	}
	return p
}

// give takes a buffer back.
func (p *pump) give(data []byte) {
	if cap(data) > 0 {
		p.free <- data[:cap(data)]
	}
}

// run is the goroutine. It ends with the upstream's body, when the exchange is over, or when it is stopped.
func (p *pump) run(r *http.Request) {
	defer close(p.done)
	defer func() {
		if fault := recover(); fault != nil { // of a decoder of a content coding; here it would end the process
			p.bring(chunk{err: fmt.Errorf("panic while reading from the upstream: %v", fault)})
		}
	}()
	x := p.x
	began := x.elapsed()
	if x.h.slots != nil {
		err := x.h.takeSlot(r.Context())
		p.waited = x.elapsed() - began
		if err != nil {
			p.bring(chunk{err: err})
			return
		}
		p.slot = true
	}
	p.attempted, p.sentAt = true, x.elapsed()
	x.watch.begin()
	// Without ReverseProxy's trace: 1xx heads of the upstream are not for the client, whose dialect it does not speak.
	res, err := x.h.askUpstream(r.WithContext(x.ctx))
	x.watch.end()
	if err != nil {
		p.bring(chunk{err: err})
		return
	}
	defer res.Body.Close()
	if !p.bring(chunk{res: res}) {
		return
	}
	x.watch.begin()
	body, err := plainBody(res) // which reads the head of a content coding
	x.watch.end()
	if err != nil {
		p.bring(chunk{err: err})
		return
	}
	defer body.Close()
	tail := int64(0)
	for {
		var buf []byte
		select {
		case buf = <-p.free:
		case <-x.ctx.Done():
			return
		}
		x.watch.begin()
		n, err := body.Read(buf)
		x.watch.end()
		select {
		case <-p.drain: // behind the end only the connection counts
			if tail += int64(n); err != nil || tail > tailBytes {
				return
			}
			p.free <- buf
		default:
			if !p.bring(chunk{data: buf[:n], err: err}) || err != nil {
				return
			}
		}
	}
}

// bring hands a chunk over; false: nobody takes it any more.
func (p *pump) bring(c chunk) bool {
	select {
	case p.full <- c:
		return true
	case <-p.drain:
		return c.err == nil || c.err == io.EOF
	case <-p.x.ctx.Done():
		return false
	}
}

// stop ends the goroutine and waits for it, and tells the exchange what it did. With tail it first reads on behind the end of the answer,
// within bounds, so that the connection can be used again.
func (p *pump) stop(tail bool) {
	if p.joined {
		return
	}
	p.joined = true
	if tail {
		close(p.drain)
		t := time.AfterFunc(tailTime, func() { p.x.cancel(errTail) })
		defer t.Stop()
	} else {
		p.x.cancel(errEnded)
	}
	<-p.done
	p.tell()
	for {
		select {
		case buf := <-p.free:
			p.x.h.small.Put(buf)
		default:
			return
		}
	}
}

// tell takes what the goroutine did over into the exchange, once it has brought something or ended.
func (p *pump) tell() {
	if p.told {
		return
	}
	p.told = true
	p.x.slot = p.slot // given back by finish
	p.x.attempted, p.x.sentAt = p.attempted, p.sentAt
	p.x.waited += p.waited
}
