package training

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Mark says durably that the rollout lacks a call, or has one that must not be trained on: for ever, and also of a frozen one. reason is a
// word that people read in the state file. callID may be empty.
func (s *Store) Mark(ctx context.Context, rollout, callID, reason string) error {
	if !ValidID(rollout) || callID != "" && !ValidCall(callID) {
		return fmt.Errorf("mark incomplete: %w: %q of %q", ErrInvalidID, callID, rollout)
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.loadState(); err != nil {
			return err
		}
		if err := t.r.st.over(false); err != nil {
			return err
		}
		if err := t.markState(callID, reason); err != nil {
			return err
		}
		return t.s.appendMarker(rollout, callID)
	}}, "mark incomplete")
}

// markState makes the state durably incomplete.
func (t *turn) markState(callID, reason string) error {
	if t.r.st == nil || t.vouch(nil) != nil {
		// Nothing that may be lost is vouched for: the state as it is on the disk is enough for a mark.
		if err := t.loadState(); err != nil {
			return err
		}
	}
	st := t.r.st
	st.incomplete = true
	st.version++
	st.mark(Marked{CallID: callID, Reason: reason, At: strconv.FormatInt(time.Now().Unix(), 10)})
	if f := t.s.o.Observe.Marked; f != nil {
		f(t.r.id, callID, reason)
	}
	return t.writeState(true)
}

// appendMarker adds to <id>.tokens.incomplete, which is for people: what counts is in the state.
func (s *Store) appendMarker(rollout, callID string) error {
	h, err := openHandle(s.fs, markerPath(s.o.Dir, rollout), true)
	if err != nil {
		return err
	}
	defer h.Close()
	size, err := h.size()
	if err != nil {
		return err
	}
	if _, err := h.WriteAt(append([]byte(callID), '\n'), size); err != nil {
		return err
	}
	if err := h.Sync(); err != nil {
		return err
	}
	return s.dir.Wait()
}
