package training

import (
	"fmt"
	"io"
	"time"
)

// batch runs intents and entries that came together: one write and one sync for each of the two files.
func (t *turn) batch(ops []*op) {
	began := time.Now()
	if err := t.live(); err != nil {
		fail(ops, err)
		return
	}
	var intents, entries, repeated []*op
	indexed := false
	var bad error // of the file of entries; intents are in another one
	for _, o := range ops {
		if o.line == nil {
			intents = append(intents, o)
			continue
		}
		if !indexed {
			bad, indexed = t.index(), true
		}
		if o.err = bad; bad == nil {
			entries, repeated = t.sort(o, entries, repeated)
		}
	}
	// An index that had to be read anew may have brought another state.
	if err := t.r.st.over(true); err != nil {
		fail(ops, err)
		return
	}
	w := writing{t: t}
	if err := w.all(intents, entries); err != nil {
		w.undo()
		fail(append(intents, entries...), err)
		fail(repeated, err)
		return
	}
	t.acknowledge(entries)
	if len(repeated) > 0 && t.r.unsure {
		if err := t.settle(); err != nil {
			fail(repeated, err)
		}
	}
	if f := t.s.o.Observe.Batch; f != nil && len(w.done) > 0 {
		f(len(intents), len(entries), int(w.bytes), time.Since(began))
	}
}

func fail(ops []*op, err error) {
	for _, o := range ops {
		if o.err == nil {
			o.err = err
		}
	}
}

// sort finds out what an entry is: new, there already, or in conflict with what is there.
func (t *turn) sort(o *op, entries, repeated []*op) (_, _ []*op) {
	sum, ok := t.r.st.digests[o.line.call]
	for _, e := range entries {
		if e.line.call == o.line.call {
			sum, ok = e.line.sum, true
		}
	}
	switch {
	case !ok:
		return append(entries, o), repeated
	case sum == o.line.sum:
		return entries, append(repeated, o)
	}
	o.err = fmt.Errorf("%w: %s", ErrConflict, o.line.call)
	if err := t.markState(o.line.call, "conflict"); err != nil {
		o.err = fmt.Errorf("%w, and the rollout could not be marked: %w", o.err, err)
	}
	return entries, repeated
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
		r.known[1] = r.intents.id
	}
	if len(entries) > 0 {
		r.known[0] = r.data.id
		r.unsure = false // New said so to Secure
	}
	return nil
}

// begin says what is about to be appended to h.
func (w *writing) begin(h *handle, at int64, lines int, fresh bool) *Appended {
	w.files = append(w.files, h)
	w.done = append(w.done, Appended{
		Rollout: w.t.r.id, File: h, Path: h.Name(), Offset: at, Lines: lines, New: fresh || !h.sure, Sync: h.Sync,
	})
	return &w.done[len(w.done)-1]
}

func (w *writing) intents(ops []*op) error {
	h := w.t.r.intents
	at, err := w.t.tail(h)
	if err != nil {
		return err
	}
	buf := make([]byte, 0, 64*len(ops))
	for _, o := range ops {
		buf = append(append(buf, o.intent...), '\n')
	}
	a := w.begin(h, at, len(ops), w.t.r.known[1] != h.id)
	a.Data = buf
	w.bytes += int64(len(buf))
	_, err = h.WriteAt(buf, at)
	return err
}

// entries writes lines, all small ones that follow each other in one write.
func (w *writing) entries(ops []*op) error {
	r := w.t.r
	a := w.begin(r.data, r.st.indexed, len(ops), r.known[0] != r.data.id || r.unsure)
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
// be cut off is there without having been acknowledged: an entry is whole and true, or torn, and an intent masks.
func (w *writing) undo() {
	for i, h := range w.files {
		h.Truncate(w.done[i].Offset)
	}
	w.t.s.lineage.forget(w.t.r.id)
	w.t.r.forget()
}
