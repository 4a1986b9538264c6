package training

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gofrs/flock"

	"rolltap/internal/storefs"
)

// turn is what is done to one rollout while its lock is held.
type turn struct {
	s *Store
	r *rollout
}

// turn runs operations and sets their err.
func (s *Store) turn(r *rollout, ops []*op) {
	err := s.locked(r, func(t *turn) {
		if ops[0].run == nil {
			t.batch(ops)
		} else {
			ops[0].err = ops[0].run(t)
		}
	})
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		if o.err != nil && !errors.Is(o.err, ErrFrozen) && !errors.Is(o.err, ErrRetired) {
			s.trouble(r.id, o.err)
		}
	}
}

// locked calls do with the rollout's lock held.
func (s *Store) locked(r *rollout, do func(*turn)) error {
	l, err := s.lock(r.id)
	if err != nil {
		return err
	}
	began := time.Now()
	do(&turn{s, r})
	unlock(l)
	if held := time.Since(began); held > courteous {
		r.free = time.Now().Add(min(held/courtesy, courtesyTo))
	}
	return nil
}

// unlock gives back a lock. That closing its descriptor may fail says nothing about what was written under it.
func unlock(l *flock.Flock) { l.Close() }

// loadState makes r.st what the state file says, or more.
func (t *turn) loadState() error {
	now, err := stampOf(statePath(t.s.o.Dir, t.r.id))
	if err != nil {
		return err
	}
	if t.r.loaded && now == t.r.stamp {
		return nil
	}
	return t.reload(now)
}

func (t *turn) reload(now stamp) error {
	t.r.loaded, t.r.indexed, t.r.behind = false, false, 0
	st, err := readState(t.s.fs, statePath(t.s.o.Dir, t.r.id))
	if err != nil {
		return err
	}
	t.r.st, t.r.stamp, t.r.loaded = st, now, true
	return nil
}

// live loads the state and refuses what is over.
func (t *turn) live() error {
	if err := t.loadState(); err != nil {
		return err
	}
	return t.r.st.over(true)
}

func (s *state) over(frozen bool) error {
	switch {
	case s.retired:
		return ErrRetired
	case frozen && s.frozen:
		return ErrFrozen
	}
	return nil
}

// index makes r.st what the file of entries says, too, and opens that file if there is one. loadState has succeeded.
func (t *turn) index() error {
	path := dataPath(t.s.o.Dir, t.r.id)
	kept, err := reuse(t.s.fs, &t.r.data, path, false)
	if err != nil {
		return err
	}
	size := int64(0)
	id, sure := storefs.FileID{}, true
	if t.r.data != nil {
		if size, err = t.r.data.size(); err != nil {
			return err
		}
		id, sure = t.r.data.id, t.r.data.sure
	}
	if !t.r.indexed || id != t.r.dataID || !sure && !kept || size < t.r.st.indexed {
		if t.r.indexed { // what we knew was of another file
			if err := t.reload(t.r.stamp); err != nil {
				return err
			}
		}
		t.r.dataID, t.r.dataSure = id, sure
	}
	if t.r.st.indexed > size {
		return fmt.Errorf("%w: the state has indexed %d bytes of %d", ErrDamaged, t.r.st.indexed, size)
	}
	if !t.r.indexed && t.r.st.indexed > 0 {
		if size, err = t.border(size); err != nil {
			return err
		}
	}
	if t.r.st.indexed < size || t.r.st.legacy {
		if err := t.recover(size); err != nil {
			t.r.loaded = false
			return err
		}
	}
	t.r.indexed = true
	return nil
}

// border makes sure that what the state has indexed ends with a line, so that the next one is not written into it, and returns the size of the
// file. There are writers whose last line lacks its newline.
func (t *turn) border(size int64) (int64, error) {
	st, f := t.r.st, t.r.data
	var b [1]byte
	if _, err := f.ReadAt(b[:], st.indexed-1); err != nil {
		return 0, err
	}
	switch {
	case b[0] == '\n':
		return size, nil
	case st.indexed < size:
		return 0, fmt.Errorf("%w: the state has indexed up to byte %d, inside of a line", ErrDamaged, st.indexed)
	}
	if _, err := f.WriteAt([]byte{'\n'}, size); err != nil {
		f.Truncate(size)
		return 0, err
	}
	st.indexed++
	t.r.behind++
	t.r.unsure = true
	t.healed()
	return st.indexed, nil
}

// recover reads the entries that the state does not know. A last line that is no JSON was never acknowledged and is cut off.
func (t *turn) recover(size int64) error {
	st, f := t.r.st, t.r.data
	r := NewReader(f, st.indexed, size)
	var found []*View
	end := size
	for {
		v, err := r.Next()
		if err == io.EOF {
			break
		}
		if d := (*Damage)(nil); errors.As(err, &d) && d.Torn {
			if err := t.cutOff(f, false, d.Offset); err != nil {
				return err
			}
			end = d.Offset
			break
		}
		if err == nil && v.Rollout != t.r.id {
			err = fmt.Errorf("an entry of rollout %q", v.Rollout)
		}
		if err == nil {
			err = v.checkArrays(f)
		}
		if err != nil {
			return fmt.Errorf("%w: at byte %d of the entries: %w", ErrDamaged, r.Offset(), err)
		}
		found = append(found, v)
	}
	if end == size && !r.newline { // a whole entry whose newline is missing
		if _, err := f.WriteAt([]byte{'\n'}, size); err != nil {
			f.Truncate(size)
			return err
		}
		end++
	}
	return t.adopt(found, end)
}

// cutOff takes a torn tail away, durably: what is written in its place, by whomever, may rest on a journal, and must not find it there again.
func (t *turn) cutOff(h *handle, intents bool, at int64) error {
	if err := h.Truncate(at); err != nil {
		return err
	}
	t.healed()
	err := t.s.runSecure([]Appended{t.r.appended(h, intents, true)})
	if err != nil {
		t.r.closeHandles()
	}
	return err
}

// adopt takes recovered entries into the index.
func (t *turn) adopt(found []*View, end int64) error {
	st := t.r.st
	fresh := map[string]*View{}
	for _, v := range found {
		sum, ok := st.digests[v.CallID]
		if other := fresh[v.CallID]; other != nil {
			sum, ok = other.Sum, true
		}
		if ok && sum != v.Sum {
			if err := t.markState(v.CallID, "conflict"); err != nil {
				return err
			}
			return fmt.Errorf("%w: call %s is there twice", ErrConflict, v.CallID)
		}
		fresh[v.CallID] = v
	}
	for call, v := range fresh {
		st.digests[call] = v.Sum
	}
	if !st.legacy {
		st.version += int64(len(found))
	}
	t.r.behind += end - st.indexed
	st.indexed, st.legacy = end, false
	t.r.unsure = t.r.unsure || len(found) > 0
	return nil
}

func (t *turn) healed() {
	if f := t.s.o.Observe.Healed; f != nil {
		f(t.r.id)
	}
}

// settle makes recovered entries durable, before anything is said that rests on them. After an error everything has been forgotten.
func (t *turn) settle() error {
	if !t.r.unsure {
		return nil
	}
	return t.vouch(nil)
}

// vouch makes the file of entries durable, whatever they rest on, before a state has indexed them: behind a power cut it would be ahead of its
// file. intents is made durable, too, unless it is nil. After an error everything has been forgotten.
func (t *turn) vouch(intents *handle) error {
	r := t.r
	var ws []Appended
	if r.unsure || r.rests {
		if _, err := reuse(t.s.fs, &r.data, dataPath(t.s.o.Dir, r.id), false); err != nil {
			r.forget()
			return err
		}
		if r.data == nil || r.data.id != r.dataID { // what we know is of a file that has gone
			r.forget()
			return fmt.Errorf("%s: %w", dataPath(t.s.o.Dir, r.id), errMoved)
		}
		a := r.appended(r.data, false, r.unsure || r.known[0] != r.data.id)
		a.Offset = r.st.indexed
		ws = append(ws, a)
	}
	if intents != nil && t.s.o.Secure != nil {
		ws = append(ws, r.appended(intents, true, r.known[1] != intents.id))
	}
	if len(ws) == 0 {
		return nil
	}
	if err := t.s.runSecure(ws); err != nil {
		r.forget()
		return err
	}
	if r.unsure || r.rests {
		r.unsure, r.rests, r.known[0] = false, false, r.data.id
	}
	return nil
}

// writeState gives the state file what r.st says. Nothing that it has indexed is unsure.
func (t *turn) writeState(durable bool) error {
	path := statePath(t.s.o.Dir, t.r.id)
	if err := t.s.fs.replace(path, t.r.st.encode(), durable); err != nil {
		t.r.loaded = false // which of the two it is now, who knows
		return err
	}
	now, err := stampOf(path)
	if err != nil {
		t.r.loaded = false
		return err
	}
	t.r.stamp, t.r.behind = now, 0
	return nil
}

// writeLazy writes the state when it lacks much.
func (t *turn) writeLazy() error {
	if t.r.behind <= t.s.o.Lazy {
		return nil
	}
	if err := t.loadState(); err != nil || t.r.behind <= t.s.o.Lazy {
		return err
	}
	if err := t.index(); err != nil {
		return err
	}
	if err := t.vouch(nil); err != nil {
		return err
	}
	return t.writeState(false)
}

// persist is writeLazy for a rollout that is nobody's any more.
func (s *Store) persist(r *rollout) {
	if r.behind <= s.o.Lazy {
		return
	}
	err := s.locked(r, func(t *turn) {
		if err := t.writeLazy(); err != nil {
			s.trouble(r.id, err)
		}
	})
	if err != nil {
		s.trouble(r.id, err)
	}
}

// tail is where the next line of a file of lines belongs. What stands behind the last newline is cut off: it was never
// acknowledged.
func (t *turn) tail(h *handle) (int64, error) {
	size, err := h.size()
	if err != nil || size == 0 {
		return 0, err
	}
	var b [4096]byte
	for end := size; ; {
		n := min(end, int64(len(b)))
		if end == size {
			n = 1
		}
		if _, err := h.ReadAt(b[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 || end == n {
			at := end - n + int64(i) + 1
			if at == size {
				return size, nil
			}
			return at, t.cutOff(h, h == t.r.intents, at)
		}
		end -= n
	}
}
