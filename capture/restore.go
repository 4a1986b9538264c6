package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"rolltap/capture/protocol"
	"rolltap/internal/jsonx"
)

// fileReplay brings entries back into one file, under its lock. For each entry it does the least that is true:
//
//   - The file is not the one that the entry was meant for: it was cleared, or replaced by what a repair made durable.
//     Nothing comes back.
//   - The entry's bytes are where they belong: they are written again. A sync of them may have failed, and the system may take
//     for durable what the disk does not have.
//   - What is where they belong is them, cut off or with NUL bytes in it: exactly these bytes are written there. Lines hold
//     no NUL bytes, so each one is a byte that the file system lost.
//   - Somebody has gone on behind the loss: lines whose call is nowhere in the file are appended, the others are written again
//     where they stand. So a record that is there is never there twice, whatever happened to its place.
//
// Then the file is synced, also when nothing was written: what a kill left in it may not be durable.
//
// What is other in token files is in restoretokens.go.
type fileReplay struct {
	dir  string
	name fileName
	step func() error // as in replayer

	cleared int // lines of other files
	lines   int // written, in whole or in part
	bytes   int64

	f     *os.File // without O_APPEND: holes are filled
	is    fileID
	size  int64
	calls map[[16]byte]span // that the file holds; nil until they are needed
	tail  int64             // where an unfinished last line begins, size when there is none; valid with calls
	whole bool              // it lacks nothing but its newline
	state tokenState        // of token files
	seg   *os.File          // of the last entry
	open  *replaySegment    // what seg is
	bufs  [2][]byte
}

// span is a line in the file, from its first byte to behind its last.
type span struct{ from, to int64 }

func (r *fileReplay) run(ctx context.Context, entries []replayEntry) error {
	path := r.name.path(r.dir)
	lock, st, err := r.lock(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		r.skip(entries)
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if r.f, err = openFile(path, os.O_RDWR); err != nil {
		return err
	}
	defer r.f.Close()
	now, err := r.f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(st, now) {
		return errMoved
	}
	r.size = now.Size()
	r.is, err = identityOf(r.f)
	if errors.Is(err, errNoBirthTime) {
		r.skip(entries) // the entry's file had one
		return nil
	}
	if err != nil {
		return err
	}
	if r.state, err = r.readState(); err != nil {
		return err
	}
	defer func() {
		if r.seg != nil {
			r.seg.Close()
		}
	}()
	if entries, err = r.split(entries); err != nil {
		return err
	}
	about := 0
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		did, err := r.apply(e)
		if err != nil {
			return err
		}
		if did != protocol.Skip {
			about++
		}
	}
	if protocol.Finish(about) == protocol.LeaveFile {
		return nil
	}
	if err := r.ask(); err != nil {
		return err
	}
	return r.f.Sync()
}

func (r *fileReplay) skip(entries []replayEntry) {
	for _, e := range entries {
		r.cleared += e.lines
	}
}

func (r *fileReplay) ask() error {
	if r.step == nil {
		return nil
	}
	return r.step()
}

// apply does with an entry what protocol.Restore says, and returns what that was.
func (r *fileReplay) apply(e replayEntry) (protocol.RestoreStep, error) {
	var p protocol.Restore
	whole := false
	for !p.Ended() {
		var f protocol.Finding
		var err error
		switch p.Do {
		case protocol.Identify:
			f.Same = r.same(e)
		case protocol.Compare:
			if err = r.source(e.segment); err == nil {
				f, err = r.compare(e)
				whole = f.Whole
			}
		case protocol.Search:
			f.Elsewhere, err = r.elsewhere(e)
		}
		f.Closed = r.state.closed()
		if err != nil {
			return p.Do, err
		}
		p = p.Next(f)
	}
	switch p.Do {
	case protocol.Skip:
		r.skip([]replayEntry{e})
	case protocol.InPlace:
		return p.Do, r.restore(e, whole)
	case protocol.Append:
		return p.Do, r.appendMissing(e)
	case protocol.Blank:
		return p.Do, r.blank(e)
	}
	return p.Do, nil
}

// source opens the segment that entries are read from.
func (r *fileReplay) source(s *replaySegment) (err error) {
	if s == r.open {
		return nil
	}
	if r.seg != nil {
		r.seg.Close()
	}
	r.open = nil
	if r.seg, err = openFile(s.path, os.O_RDONLY); err == nil {
		r.open = s
	}
	return err
}

// elsewhere reports whether a call of the entry stands at another place: a replay that was killed, or one of another journal,
// may have appended it, just up to where it belongs.
func (r *fileReplay) elsewhere(e replayEntry) (found bool, err error) {
	if err = r.scan(); err != nil {
		return false, err
	}
	err = r.each(r.seg, e.at, e.size, func(_ Line, key [16]byte) error {
		if at, ok := r.calls[key]; ok && (at.to <= e.offset || at.to > e.offset+e.size) {
			found = true
		}
		return nil
	})
	return found, err
}

// compare looks at the place of an entry.
func (r *fileReplay) compare(e replayEntry) (f protocol.Finding, err error) {
	if r.size < e.offset {
		return f, nil // what stood in front is lost, too, and has been appended by somebody at another place
	}
	whole, withdrawn := r.size >= e.offset+e.size, false
	there := min(r.size-e.offset, e.size)
	for at := int64(0); at < there; {
		n := min(there-at, pieceSize)
		want, err := r.piece(0, r.seg, e.at+at, n)
		if err != nil {
			return f, err
		}
		have, err := r.piece(1, r.f, e.offset+at, n)
		if err != nil {
			return f, err
		}
		at += n
		if bytes.Equal(want, have) {
			continue
		}
		whole = false
		for i, c := range have {
			switch {
			case c == want[i], c == 0:
			case c == ' ' && want[i] != '\n' && r.name.part() == PartIntents: // no intent has one
				withdrawn = true
			default:
				return f, nil
			}
		}
	}
	first, err := r.piece(0, r.seg, e.at, 1)
	if err != nil {
		return f, err
	}
	// Behind the rest of some other line it is, or would become, a part of that, even when NUL bytes stand between them.
	begins := first[0] == '\n'
	if !begins {
		if begins, err = r.lineBegins(e.offset); err != nil {
			return f, err
		}
	}
	return protocol.Finding{Whole: whole && begins, Fits: begins, Withdrawn: withdrawn && begins}, nil
}

// lineBegins reports whether nothing but NUL bytes stands between off and the end of the line in front of it.
func (r *fileReplay) lineBegins(off int64) (bool, error) {
	for off > 0 {
		n := min(off, pieceSize)
		off -= n
		have, err := r.piece(1, r.f, off, n)
		if err != nil {
			return false, err
		}
		if rest := bytes.TrimRight(have, "\x00"); len(rest) > 0 {
			return rest[len(rest)-1] == '\n', nil
		}
	}
	return true, nil
}

// piece reads n bytes, at most pieceSize, into one of the two buffers.
func (r *fileReplay) piece(i int, f io.ReaderAt, off, n int64) ([]byte, error) {
	if r.bufs[i] == nil {
		r.bufs[i] = make([]byte, pieceSize)
	}
	p := r.bufs[i][:n]
	if got, err := f.ReadAt(p, off); got < len(p) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return p, nil
}

// restore writes the data of an entry where it belongs. there says that it is there.
func (r *fileReplay) restore(e replayEntry, there bool) error {
	for at := int64(0); at < e.size; {
		p, err := r.piece(0, r.seg, e.at+at, min(e.size-at, pieceSize))
		if err != nil {
			return err
		}
		if err := r.write(p, e.offset+at); err != nil {
			return err
		}
		at += int64(len(p))
	}
	if there {
		return nil
	}
	r.lines += e.lines
	r.bytes += e.size
	if r.calls == nil {
		return nil
	}
	if end := e.offset + e.size; end > r.tail {
		r.tail, r.whole = end, false // data ends with a newline
	}
	return r.each(r.seg, e.at, e.size, func(l Line, key [16]byte) error {
		r.calls[key] = span{e.offset + l.start, e.offset + l.start + l.size}
		return nil
	})
}

func (r *fileReplay) write(p []byte, off int64) error {
	if err := r.ask(); err != nil {
		return err
	}
	n, err := r.f.WriteAt(p, off)
	r.size = max(r.size, off+int64(n))
	return err
}

// again writes what stands in the file once more.
func (r *fileReplay) again(at span) error {
	for at.from < at.to {
		p, err := r.piece(1, r.f, at.from, min(at.to-at.from, pieceSize))
		if err != nil {
			return err
		}
		if err := r.write(p, at.from); err != nil {
			return err
		}
		at.from += int64(len(p))
	}
	return nil
}

// appendMissing appends those lines of an entry whose calls the file does not hold, and writes the others again.
func (r *fileReplay) appendMissing(e replayEntry) error {
	if err := r.scan(); err != nil {
		return err
	}
	return r.each(r.seg, e.at, e.size, func(l Line, key [16]byte) error {
		at, ok := r.calls[key]
		if protocol.Line(ok) == protocol.WriteAgain {
			return r.again(at)
		}
		from := r.size
		if err := r.append(l.Raw); err != nil {
			return err
		}
		r.calls[key] = span{from, r.size}
		return nil
	})
}

// append adds a line behind everything. An unfinished last line is ended first, except when it is the beginning of this very
// line, left by a power cut or by a replay that was killed: then it is finished.
func (r *fileReplay) append(raw []byte) error {
	rest := raw
	heal := r.tail < r.size
	if n := r.size - r.tail; heal && !r.whole && n <= int64(len(raw)) {
		begun := make([]byte, n)
		if _, err := r.f.ReadAt(begun, r.tail); err != nil {
			return err
		}
		if bytes.HasPrefix(raw, begun) {
			rest, heal = raw[n:], false
		}
	}
	if heal && !r.whole && r.name.part() != partRecords {
		if err := r.cut(); err != nil {
			return err
		}
		heal = false
	}
	line := make([]byte, 0, len(rest)+2)
	if heal {
		line = append(line, '\n')
	}
	line = append(line, rest...)
	if err := r.write(append(line, '\n'), r.size); err != nil {
		return err
	}
	r.tail, r.whole = r.size, false
	r.lines++
	r.bytes += int64(len(rest))
	return nil
}

// scan learns, once, which calls the file holds and where its unfinished last line begins.
func (r *fileReplay) scan() error {
	if r.calls != nil {
		return nil
	}
	r.calls = map[[16]byte]span{}
	r.tail = r.size
	if r.size == 0 {
		return nil
	}
	last, err := r.piece(1, r.f, r.size-1, 1)
	if err != nil {
		return err
	}
	if last[0] != '\n' {
		r.tail = r.size - 1 // when it is blank no line tells
	}
	return r.each(r.f, 0, r.size, func(l Line, key [16]byte) error {
		if l.Torn {
			r.tail = l.start
			if r.whole = l.Damage == nil; !r.whole {
				return nil // no line yet
			}
		}
		r.calls[key] = span{l.start, l.start + l.size}
		return nil
	})
}

// each reads lines, save those that no reader reads. key stands for the call of a line, or for its bytes when it names none.
func (r *fileReplay) each(f io.ReaderAt, off, size int64, do func(l Line, key [16]byte) error) error {
	lines := newLines(io.NopCloser(io.NewSectionReader(f, off, size)))
	for {
		l, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if l.Raw == nil {
			continue
		}
		call, ok := "", false
		if l.Damage == nil && r.name.part() != PartIntents {
			call, ok = jsonx.Text(jsonx.Get(l.Raw, "model_call_id"))
		}
		if !ok {
			call = string(l.Raw)
		}
		if err := do(l, callKey(call)); err != nil {
			return err
		}
	}
}
