package training

import (
	"fmt"
	"io"
	"time"

	"rolltap/internal/storefs"
)

// batch runs intents and entries that came together: one write and one sync for each of the two files.
func (t *turn) batch(ops []*op) {
	began := time.Now()
	if err := t.live(); err != nil {
		fail(ops, err)
		return
	}
	var b batched
	indexed := false
	var bad error // of the file of entries; intents are in another one
	for _, o := range ops {
		if o.line == nil {
			b.intents = append(b.intents, o)
			continue
		}
		if !indexed {
			bad, indexed = t.index(), true
		}
		if o.err = bad; bad == nil {
			b.sort(o, t.r.st)
		}
	}
	// An index that had to be read anew may have brought another state.
	if err := t.r.st.over(true); err != nil {
		fail(ops, err)
		return
	}
	w := writing{t: t}
	if err := w.all(b.intents, b.entries); err != nil {
		w.undo()
		fail(append(append(b.intents, b.entries...), b.repeated...), err)
	} else {
		t.acknowledge(b.entries)
		if len(b.repeated) > 0 {
			fail(b.repeated, t.settle())
		}
		if f := t.s.o.Observe.Batch; f != nil && len(w.done) > 0 {
			f(len(b.intents), len(b.entries), int(w.bytes), time.Since(began))
		}
	}
	for _, o := range b.conflicts { // last, when nothing is unsure any more
		o.err = fmt.Errorf("%w: %s", ErrConflict, o.line.call)
		if err := t.markState(o.line.call, "conflict"); err != nil {
			o.err = fmt.Errorf("%w, and the rollout could not be marked: %w", o.err, err)
		}
	}
}

// batched are the operations of one batch by what they are.
type batched struct {
	intents   []*op
	entries   []*op // new
	repeated  []*op // there already
	conflicts []*op // of a call that has another payload
}

// sort finds out what an entry is.
func (b *batched) sort(o *op, st *state) {
	sum, ok := st.digests[o.line.call]
	for _, e := range b.entries {
		if e.line.call == o.line.call {
			sum, ok = e.line.sum, true
		}
	}
	switch {
	case !ok:
		b.entries = append(b.entries, o)
	case sum == o.line.sum:
		b.repeated = append(b.repeated, o)
	default:
		b.conflicts = append(b.conflicts, o)
	}
}

// fail gives those operations err that have no error yet.
func fail(ops []*op, err error) {
	for _, o := range ops {
		if o.err == nil {
			o.err = err
		}
	}
}

// acknowledge takes written entries into the index.
func (t *turn) acknowledge(entries []*op) {
	st := t.r.st
	for _, o := range entries {
		st.digests[o.line.call] = o.line.sum
		st.version++
		end := st.indexed + o.line.size + 1
		if t.r.dataSure {
			t.s.lineage.add(t.r.id, t.r.data.id, st.indexed, end, o.line)
		}
		t.r.behind += end - st.indexed
		st.indexed = end
	}
}

// writing is one batch on its way to the files.
type writing struct {
	t     *turn
	done  []Appended
	files []*handle // of done
	bytes int64
	left  int64 // size of the file of intents behind it
}

// all returns nil when everything is durable in the files that the paths name.
func (w *writing) all(intents, entries []*op) error {
	r, dir := w.t.r, w.t.s.o.Dir
	if len(intents) > 0 {
		if _, err := reuse(w.t.s.fs, &r.intents, intentsPath(dir, r.id), true); err != nil {
			return err
		}
		if err := w.intents(intents); err != nil {
			return err
		}
	}
	if len(entries) > 0 {
		kept, err := reuse(w.t.s.fs, &r.data, dataPath(dir, r.id), true)
		if err != nil {
			return err
		}
		if !kept && r.st.indexed > 0 {
			return fmt.Errorf("%s: %w", r.data.Name(), errMoved)
		}
		if r.st.indexed == 0 {
			r.dataID, r.dataSure = r.data.id, r.data.sure
		}
		if err := w.entries(entries); err != nil {
			return err
		}
	}
	if len(w.done) == 0 {
		return nil
	}
	if err := w.t.s.runSecure(w.done); err != nil {
		return fmt.Errorf("make durable: %w", err)
	}
	for i, h := range w.files {
		ok, err := h.named(w.done[i].Path)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s: %w", w.done[i].Path, errMoved)
		}
	}
	if len(intents) > 0 {
		r.known[1], r.left = r.intents.id, w.left
	}
	if len(entries) > 0 {
		r.known[0] = r.data.id
		r.unsure = false // New said so to Secure
		r.rests = w.t.s.o.Secure != nil
	}
	return nil
}

// begin says what is about to be appended to h.
func (w *writing) begin(h *handle, at int64, lines int, intents, fresh bool) *Appended {
	a := w.t.r.appended(h, intents, fresh)
	a.Offset, a.Lines = at, lines
	w.files = append(w.files, h)
	w.done = append(w.done, a)
	return &w.done[len(w.done)-1]
}

func (w *writing) intents(ops []*op) error {
	h, r := w.t.r.intents, w.t.r
	size, err := h.size()
	if err != nil {
		return err
	}
	at, err := w.t.tail(h)
	if err != nil {
		return err
	}
	buf := make([]byte, 0, 64*len(ops))
	for _, o := range ops {
		buf = append(append(buf, o.intent...), '\n')
	}
	// What others have appended since may not be durable, and what was cut off may be there again.
	a := w.begin(h, at, len(ops), true, r.known[1] != h.id || size != r.left)
	a.Data = buf
	w.left = at + int64(len(buf))
	w.bytes += int64(len(buf))
	_, err = h.WriteAt(buf, at)
	return err
}

// entries writes lines, all small ones that follow each other in one write.
func (w *writing) entries(ops []*op) error {
	r := w.t.r
	a := w.begin(r.data, r.st.indexed, len(ops), false, r.known[0] != r.data.id || r.unsure)
	at, size := a.Offset, int64(0)
	for _, o := range ops {
		size += o.line.size + 1
	}
	buf := make([]byte, 0, min(size, batchMax))
	writes := 0
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		n, err := r.data.WriteAt(buf, at)
		at += int64(n)
		writes++
		if a.Data = buf; writes > 1 {
			a.Data = nil
		}
		buf = nil
		return err
	}
	for _, o := range ops {
		if o.line.size < batchMax && !o.line.streamed() {
			buf = o.line.appendTo(buf)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		writes++
		c := &counter{w: io.NewOffsetWriter(r.data, at)}
		if err := o.line.stream(c); err != nil {
			return err
		}
		at += c.n
	}
	if err := flush(); err != nil {
		return err
	}
	if w.bytes += at - a.Offset; at-a.Offset != size {
		return fmt.Errorf("%w: the lines became %d bytes in place of %d", ErrEntry, at-a.Offset, size)
	}
	return nil
}

// undo cuts off what was written, as far as the files let us, and makes the next batch begin with what it finds. What cannot
// be cut off is there without having been acknowledged: an entry is whole and true, or torn, and an intent masks. What is written in its place
// is New: it must not rest on anything but the file, which may have the one or the other there.
func (w *writing) undo() {
	for i, h := range w.files {
		h.Truncate(w.done[i].Offset)
	}
	w.t.s.lineage.forget(w.t.r.id)
	w.t.r.forget()
	w.t.r.known = [2]storefs.FileID{}
}
