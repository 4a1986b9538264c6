package training

import (
	"context"
	"fmt"
	"io"
)

// Withdraw takes back the intent of a call of which it is known that it generated nothing: it was refused, or never sent. The
// intent is blanked where it stands, which readers take for an empty line. A kill leaves it blanked; after a power cut it may
// be back, and the rollout is masked. why is counted by word in the state, when that is written next.
//
// An intent that is not there is no error. A call that has an entry is ErrConflict.
func (s *Store) Withdraw(ctx context.Context, rollout, callID, why string) error {
	if !ValidID(rollout) || !ValidCall(callID) {
		return fmt.Errorf("withdraw call: %w: %q of %q", ErrInvalidID, callID, rollout)
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.live(); err != nil {
			return err
		}
		if err := t.index(); err != nil {
			return err
		}
		if _, ok := t.r.st.digests[callID]; ok {
			return fmt.Errorf("%w: %s has an entry", ErrConflict, callID)
		}
		if err := t.blank(callID); err != nil {
			return err
		}
		t.r.st.withdraw(why, 1)
		if f := s.o.Observe.Withdrawn; f != nil {
			f(rollout, callID, why)
		}
		return nil
	}}, "withdraw call")
}

// openIntents returns the file of intents with its end healed, nil when there is none.
func (t *turn) openIntents() (*handle, int64, error) {
	_, err := reuse(t.s.fs, &t.r.intents, intentsPath(t.s.o.Dir, t.r.id), false)
	if err != nil || t.r.intents == nil {
		return nil, 0, err
	}
	size, err := t.tail(t.r.intents)
	return t.r.intents, size, err
}

// blank overwrites the intents of a call with spaces.
func (t *turn) blank(callID string) error {
	h, size, err := t.openIntents()
	if err != nil || h == nil {
		return err
	}
	spaces := make([]byte, len(callID))
	for i := range spaces {
		spaces[i] = ' '
	}
	return eachIntent(h, size, func(call string, at int64) error {
		if call != callID {
			return nil
		}
		_, err := h.WriteAt(spaces, at)
		return err
	})
}

// eachIntent calls do for every intent of the file and where it stands.
func eachIntent(f io.ReaderAt, size int64, do func(call string, at int64) error) error {
	buf := make([]byte, 32<<10)
	held := 0 // of buf, the beginning of a line
	for off := int64(0); off < size; {
		n := int(min(int64(len(buf)-held), size-off))
		if n == 0 {
			return fmt.Errorf("%w: an intent is longer than %d bytes", ErrDamaged, len(buf))
		}
		if _, err := f.ReadAt(buf[held:held+n], off); err != nil {
			return err
		}
		off += int64(n)
		p := buf[:held+n]
		at := off - int64(len(p))
		for i := 0; i < len(p); i++ {
			if p[i] != '\n' && p[i] != '\r' && (off < size || i < len(p)-1) {
				continue
			}
			end := i
			if p[i] != '\n' && p[i] != '\r' {
				end++ // the last line lacks its newline
			}
			from := 0
			for from < end && isSpace(p[from]) {
				from++
			}
			to := end
			for to > from && isSpace(p[to-1]) {
				to--
			}
			if to > from {
				if err := do(string(p[from:to]), at+int64(from)); err != nil {
					return err
				}
			}
			p, at, i = p[i+1:], at+int64(i)+1, -1
		}
		held = copy(buf, p)
	}
	return nil
}

// isSpace is what readers strip off an intent.
func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// dangling reports whether an intent has no entry.
func (t *turn) dangling() (bool, error) {
	h, size, err := t.openIntents()
	if err != nil || h == nil {
		return false, err
	}
	found := false
	err = eachIntent(h, size, func(call string, _ int64) error {
		if _, ok := t.r.st.digests[call]; !ok {
			found = true
		}
		return nil
	})
	return found, err
}
