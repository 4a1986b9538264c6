package proxy

import (
	"errors"
	"io"
	"math"
	"time"

	"rolltap/internal/grow"
	"rolltap/rewrite"
	"rolltap/rewrite/dialect"
)

const (
	// tailTime and tailBytes bound what is read of a stream behind its terminal event. The connection can be used again
	// only when its end has been seen, and an upstream that leaves it open must not keep the client.
	tailTime  = time.Second
	tailBytes = 64 << 10
	// maxCodedHold bounds what is held of an encoded stream whose chunks never end with an event; beyond it one read is
	// held back, as of a body that cannot be followed.
	maxCodedHold = 1 << 20
	// maxEvent is the longest event that is held whole to be judged, as the observer does.
	maxEvent = 16 << 20
)

// gate is the last reader of a model call's answer. Everything passes at once but the end: from the first byte of a
// stream's terminal event, or the read that reveals the end of any other body, bytes are held until commit has run,
// once. Where the end cannot be told from the bytes it holds one read back until EOF: its failure delays, it never lets
// an unrecorded end through.
//
// A gate is used by the one goroutine that copies the answer.
type gate struct {
	x   *exchange
	src io.ReadCloser

	// watch tells how far bytes may pass before the commit; exactly one of the three ways is used.
	stream  *rewrite.Observer // an event stream in the clear
	decoded *inflater         // an event stream under a content coding
	length  int64             // announced length of the body, -1: unknown

	held     []byte // bytes read and not released; their first is at offset released
	room     []byte // the memory that held has, from its beginning
	released int64
	total    int64 // bytes read
	last     int64 // offset of the last read's first byte
	safe     int64 // offset up to which bytes may pass now
	ended    bool  // the end is known: nothing behind safe passes before the commit
	verdict  dialect.Verdict
	open     bool  // the commit has run and let the end through
	srcErr   error // what src said at its end
	broken   bool  // src ended with something else than EOF
	fail     error // sticky error of the gate itself

	tail     *time.Timer // bounds what comes behind the terminal event
	tailFrom int64
}

// Read implements io.Reader for ReverseProxy's copy loop.
func (g *gate) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case g.fail != nil:
			return 0, g.fail
		case g.released < min(g.safe, g.total):
			return g.release(p), g.cleanEOF()
		case g.ended && !g.open:
			g.fail = g.commit()
		case g.srcErr != nil:
			return 0, g.srcErr
		case len(g.held) <= len(p)/2:
			// Read into the caller's buffer, behind the little that is held: what may pass is not copied again.
			n := copy(p, g.held)
			n += g.read(p[n:])
			pass := int(min(g.safe, g.total) - g.released)
			if pass == 0 && g.ended && !g.open {
				// Nothing may pass before the commit, so what is held stays where it is meanwhile.
				if g.fail = g.commit(); g.fail == nil {
					pass = n
				}
			}
			g.hold(p[pass:n])
			if pass > 0 {
				g.released += int64(pass)
				return pass, g.cleanEOF()
			}
		default:
			g.makeRoom()
			n := g.read(g.held[len(g.held):cap(g.held)])
			g.held = g.held[:len(g.held)+n]
		}
	}
}

// commit settles the exchange, once its end is known, and lets the end through.
func (g *gate) commit() error {
	if err := g.x.commit(g.situation()); err != nil {
		return err
	}
	g.open, g.safe, g.tailFrom = true, math.MaxInt64, g.total
	return nil
}

// cleanEOF tells the end together with the last bytes: one write to the client less.
func (g *gate) cleanEOF() error {
	if g.open && errors.Is(g.srcErr, io.EOF) && g.released == g.total {
		g.x.out.last.Store(true)
		return io.EOF
	}
	return nil
}

// release hands out held bytes that may pass.
func (g *gate) release(p []byte) int {
	n := copy(p, g.held[:min(g.safe, g.total)-g.released])
	g.released += int64(n)
	g.held = g.held[n:]
	return n
}

// makeRoom makes room behind what is held: in front of it, where some was released, or in more memory.
func (g *gate) makeRoom() {
	const least = 4 << 10
	switch {
	case cap(g.held)-len(g.held) >= least:
	case len(g.held)+least <= cap(g.room):
		g.held = append(g.room[:0], g.held...)
	default:
		g.held = grow.Room(g.held, least)
		g.room = g.held[:0]
	}
}

// hold holds p and nothing else.
func (g *gate) hold(p []byte) {
	g.held = grow.Append(g.room[:0], p)
	g.room = g.held[:0]
}

// read reads once from the upstream, takes the copies and finds out what may pass.
func (g *gate) read(p []byte) int {
	if g.open {
		return g.readTail(p)
	}
	n, err := g.readSource(p)
	g.last = g.total
	g.total += int64(n)
	if n > 0 {
		g.x.received(p[:n])
		g.look(p[:n])
	}
	if err != nil {
		g.sawEnd(err)
	}
	return n
}

// readSource reads once from the upstream. A translated answer is kept alive meanwhile, and its pump is watched instead.
func (g *gate) readSource(p []byte) (int, error) {
	if g.x.translated == nil {
		g.x.watch.begin()
		defer g.x.watch.end()
	}
	return g.src.Read(p)
}

// look decides how far bytes may pass now that p has arrived.
func (g *gate) look(p []byte) {
	switch {
	case g.stream != nil:
		g.follow(g.stream.Push(p))
	case g.decoded != nil:
		g.decoded.push(p)
		g.verdict = g.decoded.verdict
		g.ended = g.verdict != dialect.None
		switch {
		case g.decoded.settled():
			g.safe = g.total
		case g.decoded.blind, len(g.held) > maxCodedHold:
			g.safe = g.last
		}
	case g.length >= 0 && g.total < g.length:
		g.safe = g.total
	default:
		g.safe = g.last
		g.ended = g.length >= 0
	}
	if g.length >= 0 && g.total >= g.length {
		g.safe = min(g.safe, g.length-1) // to the client the last byte is the end, whatever the events say
	}
}

func (g *gate) follow(p rewrite.Progress) {
	g.x.sawProgress(p.Content)
	g.safe = p.Safe
	if p.Blind {
		// The event that was too large to be kept may be the terminal one, so its last read is held until more follows.
		// Inside it only the read before passes, behind it whole events do, both one read late.
		g.safe = min(g.safe, g.last)
		if g.total-p.Safe > maxEvent {
			g.safe = g.last
		}
	}
	if p.Verdict != dialect.None {
		g.safe, g.ended, g.verdict = p.End, true, p.Verdict
	}
}

// sawEnd takes the end of the upstream's body, whatever it was. A broken end is committed before what is held passes, like
// any other: a terminal event may be in it that lacks nothing but its blank line.
func (g *gate) sawEnd(err error) {
	g.srcErr = err
	if g.ended {
		return
	}
	g.ended, g.broken = true, !errors.Is(err, io.EOF)
	switch {
	case g.stream != nil:
		p := g.stream.Finish() // the last event belongs to what arrived, its blank line or not
		g.x.sawProgress(p.Content)
		if !g.broken {
			g.verdict = p.Verdict
		}
	case g.decoded != nil && !g.broken:
		g.decoded.finish()
		g.verdict = g.decoded.verdict
	}
}

// situation is what the end means.
func (g *gate) situation() situation {
	streamed := g.stream != nil || g.decoded != nil
	switch {
	case g.x.trouble != situationNone:
		return g.x.trouble
	case g.broken:
		return g.x.classify(situationCut)
	case streamed && g.verdict == dialect.Failed:
		return situationErrorFrame
	case streamed && g.verdict == dialect.None && !(g.decoded != nil && g.decoded.blind):
		return situationNoTerminal
	}
	return situationWhole
}

// readTail reads what follows a committed end.
func (g *gate) readTail(p []byte) int {
	if g.tail == nil {
		g.tail = time.AfterFunc(tailTime, func() { g.x.cancel(errTail) })
	}
	if g.total-g.tailFrom >= tailBytes {
		g.srcErr = io.EOF
		return 0
	}
	n, err := g.src.Read(p)
	g.total += int64(n)
	if err != nil {
		if g.x.tailEnded() {
			err = io.EOF // the client has the whole answer; that its connection stays open is the upstream's affair
		}
		g.srcErr = err
	}
	return n
}

func (g *gate) Close() error {
	if g.tail != nil {
		g.tail.Stop()
	}
	if g.decoded != nil {
		g.decoded.close()
	}
	return g.src.Close()
}
