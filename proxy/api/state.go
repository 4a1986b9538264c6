package api

import (
	"errors"
	"io/fs"
	"net/http"
	"strconv"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/internal/jsonx"
)

// seal keeps later calls of the rollout out. With wait=complete it returns when those that came before are done, so that what is read then is
// all there will be.
func (a *api) seal(w http.ResponseWriter, r *http.Request, id string) {
	asked, ok := wishOf(w, r)
	if !ok {
		return
	}
	if err := capture.Seal(a.Dir, id, a.Mode); err != nil {
		a.broken(w, id, err)
		return
	}
	if !a.waited(w, r, id, asked) {
		return
	}
	a.say(w, id, "sealed", true)
}

// clear removes all that the store has of a rollout, its seal included, as rolltap clear does.
func (a *api) clear(w http.ResponseWriter, r *http.Request, id string) {
	there := capture.Exists(a.Dir, id) || training.Exists(a.Dir, id)
	err := a.useTokens(r, id, func(s *training.Store) error { return s.Delete(r.Context(), id) })
	if err == nil {
		err = capture.Clear(r.Context(), a.Dir, id)
	}
	if err != nil {
		a.broken(w, id, err)
		return
	}
	a.say(w, id, "cleared", there)
}

// say answers {"rollout_id":…,NAME:value}.
func (a *api) say(w http.ResponseWriter, id, name string, value bool) {
	b := jsonx.AppendString([]byte(`{"rollout_id":`), id)
	b = strconv.AppendBool(append(append(append(b, `,"`...), name...), `":`...), value)
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(b, "}\n"...))
}

// tokens answers with the token ids that there are now (training.Snapshot.WriteJSON).
func (a *api) tokens(w http.ResponseWriter, r *http.Request, id string) {
	snap, err := training.Peek(a.Dir, id)
	if errors.Is(err, fs.ErrNotExist) {
		fail(w, http.StatusNotFound, "no_tokens", "no tokens of rollout "+id+" were captured")
		return
	}
	if err != nil {
		a.broken(w, id, err)
		return
	}
	a.snapshot(w, r, id, snap)
}

// useTokens calls use with the store of token ids, of this process or for the moment; not at all where there is nothing of the rollout.
func (a *api) useTokens(r *http.Request, id string, use func(*training.Store) error) error {
	return training.Use(r.Context(), a.Tokens, training.Options{Dir: a.Dir, Mode: a.Mode}, id, use)
}

// freeze ends the capture of the rollout's tokens and answers with what there is.
func (a *api) freeze(w http.ResponseWriter, r *http.Request, id string) {
	if !training.Exists(a.Dir, id) {
		fail(w, http.StatusNotFound, "no_tokens", "no tokens of rollout "+id+" were captured")
		return
	}
	var snap *training.Snapshot
	err := a.useTokens(r, id, func(s *training.Store) (err error) {
		snap, err = s.Freeze(r.Context(), id)
		return err
	})
	switch {
	case errors.Is(err, training.ErrRetired):
		fail(w, http.StatusGone, "retired", "the tokens of rollout "+id+" were dropped")
	case err != nil:
		a.broken(w, id, err)
	case snap == nil:
		fail(w, http.StatusNotFound, "no_tokens", "no tokens of rollout "+id+" were captured")
	default:
		a.snapshot(w, r, id, snap)
	}
}

func (a *api) snapshot(w http.ResponseWriter, r *http.Request, id string, snap *training.Snapshot) {
	defer snap.Close()
	w.Header().Set("Content-Type", "application/json")
	if err := snap.WriteJSON(w); err != nil {
		a.cut(r, id, err)
	}
}

// drop retires exactly the snapshot that the query names, once a trainer has what it needs.
func (a *api) drop(w http.ResponseWriter, r *http.Request, id string) {
	q := r.URL.Query()
	version, err := strconv.ParseInt(q.Get("version"), 10, 64)
	if err != nil || q.Get("snapshot_id") == "" {
		fail(w, http.StatusBadRequest, "invalid_request", "snapshot_id and version name what is dropped: freeze tells both")
		return
	}
	dropped := false
	err = a.useTokens(r, id, func(s *training.Store) (err error) {
		dropped, err = s.Drop(r.Context(), id, q.Get("snapshot_id"), version)
		return err
	})
	switch {
	case err != nil:
		a.broken(w, id, err)
	case !dropped:
		fail(w, http.StatusConflict, "other_snapshot", "that is not what the rollout is: freeze it again")
	default:
		a.say(w, id, "dropped", true)
	}
}
