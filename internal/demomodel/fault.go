package demomodel

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// faults are things that go wrong on demand; doc.go lists their spelling. The
// zero value is a healthy answer.
type faults struct {
	status     int           // answer with this status instead
	wait       time.Duration // before the head
	stall      time.Duration // silence before the chunk stallAt; forever when negative
	stallAt    int
	slow       time.Duration // between chunks
	cut        int           // abort after so many chunks; -1 never
	errorFrame int           // an error frame after so many chunks; -1 never
	garbage    int           // a frame that is no JSON after so many chunks; -1 never
	noDone     bool
}

var faultInText = regexp.MustCompile(`\[demo-fault: ([^\]]*)\]`)

// readFaults takes the faults from the header, the member of the body or the last
// user message: a proxy that translates may drop the first two.
func readFaults(r *http.Request, q *request) (faults, *problem) {
	spec := r.Header.Get("X-Demo-Fault")
	if spec == "" {
		spec = q.Fault
	}
	if m := faultInText.FindStringSubmatch(lastUserText(q)); spec == "" && m != nil {
		spec = m[1]
	}
	f := faults{cut: -1, errorFrame: -1, garbage: -1}
	for _, part := range strings.FieldsFunc(spec, func(c rune) bool { return c == ',' || c == ';' || c == ' ' }) {
		if !f.set(part) {
			return f, refuse("unknown demo fault "+strconv.Quote(part)+".", "demo_fault", "")
		}
	}
	return f, nil
}

func (f *faults) set(part string) (ok bool) {
	name, value, _ := strings.Cut(part, "=")
	n, errN := strconv.Atoi(value)
	count := errN == nil && n >= 0
	d, errD := time.ParseDuration(value)
	period := errD == nil && d >= 0
	switch name {
	case "status":
		f.status = n
		return errN == nil && n >= 400 && n <= 599
	case "cut":
		f.cut = n
		return count
	case "error-frame":
		f.errorFrame = n
		return count
	case "garbage":
		f.garbage = n
		return count
	case "no-done":
		f.noDone = true
		return value == ""
	case "slow":
		f.slow = d
		return period
	case "wait":
		f.wait = d
		return period
	case "stall":
		value, at, placed := strings.Cut(value, "@")
		if placed {
			if n, errN = strconv.Atoi(at); errN != nil || n < 0 {
				return false
			}
			f.stallAt = n
		}
		if value == "" {
			f.stall = -1
			return true
		}
		f.stall, errD = time.ParseDuration(value)
		return errD == nil && f.stall >= 0
	}
	return false
}

// pause waits and tells whether the client is still there. Negative: until it
// has left.
func pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	if d < 0 {
		<-ctx.Done()
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// engineDied is the frame that vLLM sends when its engine goes away.
func engineDied() *problem {
	return &problem{http.StatusInternalServerError,
		"EngineCore encountered an issue. See stack trace (above) for the root cause.", typeInternal, ""}
}

func demanded(status int) *problem {
	kind := typeInternal
	switch status {
	case http.StatusBadRequest:
		kind = typeBadRequest
	case http.StatusNotFound:
		kind = typeNotFound
	case http.StatusTooManyRequests:
		kind = "RateLimitError"
	}
	return &problem{status, "demo fault: status " + strconv.Itoa(status), kind, ""}
}
