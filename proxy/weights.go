package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"rolltap/internal/jsonx"
)

const (
	weightsFresh    = time.Second     // how old the version may be that a call begins with
	weightsPatience = 2 * time.Second // a call waits for the version
	weightsRetry    = time.Minute     // after an upstream that does not tell; most do not
	weightsAgain    = 5 * time.Second // after one that could not be asked
)

var errNoVersion = errors.New("the upstream does not tell the version of its weights")

// weights knows which version of its weights the upstream runs, for token capture. An engine that trains tells it (vLLM's GET /weight_info, in
// its development mode, wire.md 1.2); any other is asked once a minute and costs nothing in between.
//
// A call keeps the version before it was sent and the one after its answer. They are those of the whole call when they are equal, since
// versions only go forward. So the one at the end has to be asked for behind that end, and the one at the start at any time before it.
type weights struct {
	asking sync.Mutex // held by the one who asks the upstream

	mu    sync.Mutex // guards the rest; never held while the upstream is asked
	known string     // "" unknown
	asked time.Time  // when known was asked for
	next  time.Time  // not before, behind a failure
}

// before is a version that was true at some time in the last second, and no longer ago.
func (w *weights) before(ask func() (string, error)) string {
	return w.since(time.Now().Add(-weightsFresh), ask)
}

// after is a version that is true now, or was when the caller had begun to wait.
func (w *weights) after(ask func() (string, error)) string { return w.since(time.Now(), ask) }

// since is the version as the upstream told it at t or later, "" when it does not. Those who ask at the same time wait for one answer.
func (w *weights) since(t time.Time, ask func() (string, error)) string {
	if known, ok := w.look(t); ok {
		return known
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	if known, ok := w.look(t); ok {
		return known
	}
	began := time.Now()
	known, err := ask()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errNotAllowed): // the next client may be
		return ""
	case errors.Is(err, errNoVersion):
		w.known, w.next = "", time.Now().Add(weightsRetry)
	case err != nil:
		w.known, w.next = "", time.Now().Add(weightsAgain)
	default:
		w.known, w.asked = known, began
	}
	return w.known
}

// look returns what is known since t, and whether that is all that can be known now.
func (w *weights) look(t time.Time) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.next) {
		return "", true
	}
	return w.known, w.known != "" && !w.asked.Before(t)
}

// askVersion asks the upstream for the version of its weights.
func (x *exchange) askVersion() (string, error) {
	// For all who wait: this client may leave.
	ctx, cancel := context.WithTimeout(context.Background(), weightsPatience)
	defer cancel()
	head, answer, err := x.ask(ctx, http.MethodGet, "/weight_info", nil)
	switch {
	case err != nil:
		return "", err
	case head.StatusCode == http.StatusUnauthorized, head.StatusCode == http.StatusForbidden:
		return "", errNotAllowed
	case head.StatusCode != http.StatusOK:
		return "", errNoVersion
	}
	d, err := jsonx.Parse(answer)
	if err != nil {
		return "", errNoVersion
	}
	defer d.Release()
	version := d.Root().Get("weight_version").Str()
	if version == "" {
		return "", errNoVersion
	}
	return version, nil
}
