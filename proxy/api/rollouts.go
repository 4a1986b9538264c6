package api

import (
	"bufio"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/capture/training"
	"rolltap/internal/jsonx"
)

// list answers with the ids, sorted, and what can be told of each without reading it:
//
//	{"rollouts":[{"rollout_id":"r","bytes":123,"incomplete":false,"sealed":false,"tokens":false},…],"next":null}
//
// next is the id to ask for the following ones with (?after=), null at the end.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	limit := 1000
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			fail(w, http.StatusBadRequest, "invalid_request", "limit: want a number from 1")
			return
		}
		limit = n
	}
	ids, err := capture.Rollouts(a.Dir)
	if err == nil {
		var more []string
		if more, err = training.Rollouts(a.Dir); len(more) > 0 {
			ids = append(ids, more...)
			slices.Sort(ids)
			ids = slices.Compact(ids)
		}
	}
	if err != nil {
		a.broken(w, "", err)
		return
	}
	at, found := slices.BinarySearch(ids, r.URL.Query().Get("after"))
	if found {
		at++
	}
	ids = ids[at:]
	next := ""
	if len(ids) > limit {
		ids, next = ids[:limit], ids[limit-1]
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriter(w)
	out.WriteString(`{"rollouts":[`)
	for i, id := range ids {
		b := out.AvailableBuffer()
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n{"...)
		out.Write(append(a.appendState(b, id), '}'))
	}
	b := append(out.AvailableBuffer(), `],"next":`...)
	if next == "" {
		b = append(b, "null"...)
	} else {
		b = jsonx.AppendString(b, next)
	}
	out.Write(append(b, "}\n"...))
	if err := out.Flush(); err != nil {
		a.cut(r, "", err)
	}
}

// appendState appends the members that say what a rollout is without reading it; unreadable only where something else has the name of its file.
func (a *api) appendState(b []byte, id string) []byte {
	var size int64
	st, err := capture.Stat(a.Dir, id)
	if err == nil {
		size = st.Size()
	}
	sealed, _ := capture.Sealed(a.Dir, id) // what cannot be told is told by the call that needs it
	b = jsonx.AppendString(append(b, `"rollout_id":`...), id)
	b = strconv.AppendInt(append(b, `,"bytes":`...), size, 10)
	b = strconv.AppendBool(append(b, `,"incomplete":`...), capture.Marked(a.Dir, id))
	b = strconv.AppendBool(append(b, `,"sealed":`...), sealed)
	b = strconv.AppendBool(append(b, `,"tokens":`...), training.Exists(a.Dir, id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b = jsonx.AppendString(append(b, `,"unreadable":`...), err.Error())
	}
	return b
}

// rollout answers with the state of a rollout, the derived record of each call, and the sums.
func (a *api) rollout(w http.ResponseWriter, r *http.Request, id string) { a.read(w, r, id, true) }

// aggregates is rollout without the calls.
func (a *api) aggregates(w http.ResponseWriter, r *http.Request, id string) { a.read(w, r, id, false) }

func (a *api) read(w http.ResponseWriter, r *http.Request, id string, calls bool) {
	if !a.known(w, id) {
		return
	}
	busy, err := capture.Busy(a.Dir, id)
	if err != nil {
		a.broken(w, id, err)
		return
	}
	head := &late{w: w}
	out := bufio.NewWriterSize(head, 64<<10)
	b := a.appendState(append(out.AvailableBuffer(), '{'), id)
	b = strconv.AppendBool(append(b, `,"in_flight":`...), busy)
	if calls {
		b = append(b, `,"calls":[`...)
	}
	out.Write(b)
	sums, first := &derive.Aggregates{}, true
	var one []byte
	found, err := derive.Source{Dir: a.Dir, Rollout: id, Outline: capture.OutlineFrom}.Each(func(c *derive.Call, _ capture.Line) error {
		if c == nil {
			return r.Context().Err()
		}
		sums.Add(c)
		if calls {
			one = one[:0]
			if !first {
				one = append(one, ',')
			}
			first = false
			one = c.AppendJSON(append(one, '\n'), derive.Form{Own: true})
			if _, err := out.Write(one); err != nil {
				return err
			}
		}
		return r.Context().Err()
	})
	if err != nil && found.Err != nil && !head.begun {
		a.broken(w, id, err)
		return
	}
	if err != nil {
		a.cut(r, id, err)
	}
	if calls {
		out.WriteByte(']')
	}
	b = strconv.AppendInt(append(out.AvailableBuffer(), `,"lines":`...), int64(found.Lines), 10)
	b = strconv.AppendInt(append(b, `,"damaged":`...), int64(found.Damaged), 10)
	out.Write(append(appendSums(append(b, ','), sums), "}\n"...))
	if err := out.Flush(); err != nil {
		a.cut(r, id, err)
	}
}

// appendSums appends the members metrics (those of Gym) and rolltap (ours).
func appendSums(b []byte, sums *derive.Aggregates) []byte {
	b = sums.AppendMetrics(append(b, `"metrics":`...))
	return sums.AppendOwn(append(b, `,"rolltap":`...))
}

// total answers with the sums of every rollout and of all of them, as rolltap stats --json.
func (a *api) total(w http.ResponseWriter, r *http.Request) {
	ids, err := capture.Rollouts(a.Dir)
	if err != nil {
		a.broken(w, "", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 64<<10)
	err = derive.WriteSums(out, a.Dir, derive.SumsOptions{
		Rollouts: ids, Progress: func(int64) error { return r.Context().Err() },
		Unreadable: func(err error) { a.Log.Error("reading API", zap.Error(err)) },
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		a.cut(r, "", err)
	}
}

// call answers with one record as it stands in the file.
func (a *api) call(w http.ResponseWriter, r *http.Request, id string) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 {
		fail(w, http.StatusBadRequest, "invalid_request", "calls are counted from 0")
		return
	}
	if !a.known(w, id) {
		return
	}
	out := &late{w: w}
	switch err := derive.WriteCall(out, a.Dir, id, n); {
	case err == nil:
	case out.begun:
		a.cut(r, id, err)
	case errors.Is(err, derive.ErrNoCall):
		fail(w, http.StatusNotFound, "no_such_call", err.Error())
	case errors.Is(err, derive.ErrDamaged):
		fail(w, http.StatusUnprocessableEntity, "damaged", err.Error())
	default:
		a.broken(w, id, err)
	}
}

// late is an answer whose head is not sent before there is a body.
type late struct {
	w     http.ResponseWriter
	begun bool
}

func (l *late) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/json")
	}
	return l.w.Write(p)
}
