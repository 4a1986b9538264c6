package proxy

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"rolltap/internal/jsonx"
)

const (
	windowFor      = time.Minute      // an answer is believed for
	windowRetry    = 30 * time.Second // after a failure
	windowPatience = 2 * time.Second  // a call waits for the list of models
)

// windows remembers how many tokens the upstream's models can hold.
type windows struct {
	asking sync.Mutex // held by the one who asks the upstream; those who know nothing yet wait for it

	mu    sync.Mutex // guards the rest; never held while the upstream is asked
	known map[string]int64
	next  time.Time // the list is asked for again
}

// of returns the window of a model, 0 when it is unknown. ask gets the upstream's list of models; whoever has an old one does not wait for it.
func (w *windows) of(model string, ask func() ([]byte, error)) int64 {
	if known, due := w.look(); due {
		if known == nil {
			w.asking.Lock()
		} else if !w.asking.TryLock() {
			return windowOf(known, model)
		}
		if _, due := w.look(); due {
			w.renew(ask)
		}
		w.asking.Unlock()
	}
	known, _ := w.look()
	return windowOf(known, model)
}

func (w *windows) look() (known map[string]int64, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known, !time.Now().Before(w.next)
}

// renew is called with asking held. After a failure what is known stays.
func (w *windows) renew(ask func() ([]byte, error)) {
	list, err := ask()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errNotAllowed): // the next one may be, and until then nothing is known that others could go by
		return
	case err != nil:
		w.next = time.Now().Add(windowRetry)
	default:
		w.known, w.next = readWindows(list), time.Now().Add(windowFor)
	}
	if w.known == nil {
		w.known = map[string]int64{}
	}
}

func windowOf(known map[string]int64, model string) int64 {
	if n, ok := known[model]; ok {
		return n
	}
	if len(known) == 1 { // an upstream with one model often answers to any name
		for _, n := range known {
			return n
		}
	}
	return 0
}

// readWindows reads how many tokens each model of a list can hold, where the list tells (vLLM's max_model_len).
func readWindows(list []byte) map[string]int64 {
	known := map[string]int64{}
	d, err := jsonx.Parse(list)
	if err != nil {
		return known
	}
	defer d.Release()
	for model := range d.Root().Get("data").Items() {
		id := model.Get("id").Str()
		if n, ok := model.Get("max_model_len").Int(); ok && n > 0 && id != "" {
			known[id] = n
		}
	}
	return known
}

// lastDate is the last second of the year 9999, behind which RFC 3339 has no dates.
const lastDate = 253402300799

// appendModels appends a list of models in OpenAI's shape as Messages clients read it (wire.md 3.1.6); false: it is none.
func appendModels(dst, list []byte) ([]byte, bool) {
	d, err := jsonx.Parse(list)
	if err != nil {
		return dst, false
	}
	defer d.Release()
	data := d.Root().Get("data")
	if data.Kind() != jsonx.KindArray {
		return dst, false
	}
	first, last := []byte("null"), []byte("null")
	dst = append(dst, `{"data":[`...)
	for model := range data.Items() {
		id := model.Get("id")
		if id.Kind() != jsonx.KindString {
			continue
		}
		last = jsonx.AppendString(nil, id.Str())
		if string(first) == "null" {
			first = last
		} else {
			dst = append(dst, ',')
		}
		created, _ := model.Get("created").Int()
		dst = fmt.Appendf(dst, `{"type":"model","id":%s,"display_name":%s,"created_at":"`, last, last)
		dst = time.Unix(min(max(0, created), lastDate), 0).UTC().AppendFormat(dst, time.RFC3339)
		dst = append(dst, '"', '}')
	}
	return fmt.Appendf(dst, `],"has_more":false,"first_id":%s,"last_id":%s}`, first, last), true
}
