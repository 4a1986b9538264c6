package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"rolltap/capture"
)

// retryAfter is what a client that is refused for want of room is told to wait, in seconds.
const retryAfter = "1"

// flight is the model calls that are being served, all of them and those of each rollout. Refused ones are not in it.
type flight struct {
	most, mostOfOne int64 // 0: no bound

	mu       sync.Mutex // guards the rest
	all      int64
	rollouts map[string]int64
}

// enter takes a place for a call; rollout is empty for one without a prefix. It says which limit leaves none, "" when there
// is a place, which leave gives back.
func (f *flight) enter(rollout string) (limit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.most > 0 && f.all >= f.most:
		return fmt.Sprintf("%d model calls are in flight, which is --max-in-flight", f.all)
	case rollout != "" && f.mostOfOne > 0 && f.rollouts[rollout] >= f.mostOfOne:
		return fmt.Sprintf("%d calls of the rollout are in flight, which is --max-in-flight-per-rollout", f.rollouts[rollout])
	}
	f.all++
	if rollout != "" {
		if f.rollouts == nil {
			f.rollouts = map[string]int64{}
		}
		f.rollouts[rollout]++
	}
	return ""
}

func (f *flight) leave(rollout string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	if rollout == "" {
		return
	}
	if f.rollouts[rollout]--; f.rollouts[rollout] == 0 {
		delete(f.rollouts, rollout)
	}
}

// admit takes a place for a model call.
func (x *exchange) admit() {
	x.crowd = x.h.flight.enter(x.route.Rollout)
	x.placed = x.crowd == ""
}

// giveWay gives the place back, if there is one.
func (x *exchange) giveWay() {
	if x.placed {
		x.placed = false
		x.h.flight.leave(x.route.Rollout)
	}
}

// refuseCrowd refuses a call for which there is no place. Its body is read as that of any other, for the record.
func (x *exchange) refuseCrowd() {
	if err := x.takeBody(); err != nil {
		x.badUpload(err)
		return
	}
	x.out.Header().Set("Retry-After", retryAfter)
	x.refuse(http.StatusServiceUnavailable, codeOverloaded, x.crowd)
}

// refuseLow refuses a call whose record, or whose tokens, may not be missing while the store has no room for it, before anything is generated.
// The rollout is marked: its conversation will lack what this call would have said. It reports whether it did so.
func (x *exchange) refuseLow() bool {
	if x.callID == "" || x.h.cfg.Capture != CaptureRequired && x.taught == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(x.ctx, x.h.cfg.CaptureDeadline)
	defer cancel()
	err := x.h.store.Low(ctx)
	if err == nil || x.in.Context().Err() != nil {
		return false
	}
	x.h.store.Mark(x.route.Rollout, x.callID, "watermark", err)
	x.cause, x.callID = err, ""
	x.reject(http.StatusInsufficientStorage, codeStoreUnavailable, "the store has no room for the record of this call, which was not sent")
	return true
}

// declineLow gives up a record that may be missing while the store is to take none, and reports whether it did so. That is
// decided when the record is made: there may be room again.
func (x *exchange) declineLow(ctx context.Context, r *capture.Record) bool {
	if x.h.cfg.Capture == CaptureRequired {
		return false // there was room when the call began
	}
	err := x.h.store.Low(ctx)
	if !errors.Is(err, capture.ErrLow) {
		return false // a file system that does not answer yet may still take the record late
	}
	x.h.store.Decline(r, err)
	return true
}
