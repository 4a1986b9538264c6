package proxy

import (
	"fmt"
	"sync"
	"time"

	"rolltap/internal/jsonx"
)

const (
	windowFor      = time.Minute     // an answer is believed for
	windowRetry    = 5 * time.Second // after a failure
	windowPatience = 2 * time.Second // a call waits for the list of models
)

// windows remembers how many tokens the upstream's models can hold.
type windows struct {
	mu    sync.Mutex // guards the rest; held while the upstream is asked: those who know nothing yet wait for the one who asks
	known map[string]int64
	next  time.Time // the list is asked for again
}

// of returns the window of a model, 0 when it is unknown. ask gets the upstream's list of models.
func (w *windows) of(model string, ask func() ([]byte, error)) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); !now.Before(w.next) {
		list, err := ask()
		if err == nil {
			w.known = readWindows(list)
		}
		if w.next = now.Add(windowFor); err != nil {
			w.next = now.Add(windowRetry)
		}
	}
	if n, ok := w.known[model]; ok {
		return n
	}
	if len(w.known) == 1 { // an upstream with one model often answers to any name
		for _, n := range w.known {
			return n
		}
	}
	return 0
}

// readWindows reads how many tokens each model of a list can hold, where the list tells (vLLM's max_model_len).
func readWindows(list []byte) map[string]int64 {
	known := map[string]int64{}
	if !jsonx.Valid(list) {
		return known
	}
	for it := jsonx.Array(jsonx.Get(list, "data")); it.Next(); {
		id, _ := jsonx.Text(jsonx.Get(it.Value(), "id"))
		if n, ok := jsonx.Int(jsonx.Get(it.Value(), "max_model_len")); ok && n > 0 && id != "" {
			known[id] = n
		}
	}
	return known
}

// appendModels appends a list of models in OpenAI's shape as Messages clients read it (wire.md 3.1.6); false: it is none.
func appendModels(dst, list []byte) ([]byte, bool) {
	if !jsonx.Valid(list) || jsonx.KindOf(jsonx.Get(list, "data")) != jsonx.KindArray {
		return dst, false
	}
	first, last := "null", "null"
	dst = append(dst, `{"data":[`...)
	for it := jsonx.Array(jsonx.Get(list, "data")); it.Next(); {
		id := jsonx.Get(it.Value(), "id")
		if jsonx.KindOf(id) != jsonx.KindString {
			continue
		}
		if last = string(id); first == "null" {
			first = last
		} else {
			dst = append(dst, ',')
		}
		created, _ := jsonx.Int(jsonx.Get(it.Value(), "created"))
		dst = fmt.Appendf(dst, `{"type":"model","id":%s,"display_name":%s,"created_at":"`, id, id)
		dst = time.Unix(max(0, created), 0).UTC().AppendFormat(dst, time.RFC3339)
		dst = append(dst, '"', '}')
	}
	return fmt.Appendf(dst, `],"has_more":false,"first_id":%s,"last_id":%s}`, first, last), true
}
