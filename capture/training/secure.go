package training

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"rolltap/internal/storefs"
)

// Appended is what was just written behind the end of a file whose rollout's lock is held.
type Appended struct {
	Rollout string
	Intents bool         // it is the file of intents, else that of entries
	File    syscall.Conn // a descriptor of the file; it is valid until Secure returns
	Path    string
	Offset  int64  // where it begins
	Data    []byte // nil when it was more than one write, or when the file itself has to be durable; valid until Secure returns
	Lines   int
	// New: the file's name, and what came before Offset, may not have been made durable by this store's Secure.
	New bool
	// Sync makes all of the file's content durable. It is called at most once.
	Sync func() error
}

// Secure makes everything durable that was appended in one batch: one or two files of one rollout. nil promises that all of it would
// survive a power cut, the names of new files included; after an error nothing of it is acknowledged, it is cut off again,
// and the files are opened anew for the next batch, which is New. It is called with the lock of the one rollout held, from any number of
// goroutines, and what it waits for keeps no other rollout waiting.
//
// It may rest on something else than the file, a journal, from which lost bytes are written once more before anybody reads the store after a
// power cut. Before bytes of a file are indexed by a state that others read, Secure is asked without Data, and then it is the file that has
// to be durable.
//
// A withdrawn intent is blanked where it stands, without a call of Secure. Whoever writes appended bytes once more after a
// power cut may bring it back; then the rollout is masked needlessly and never wrongly.
type Secure func([]Appended) error

// syncFiles is the Secure that syncs the files themselves.
func (s *Store) syncFiles(ws []Appended) error {
	if len(ws) == 1 {
		return s.syncOne(ws[0])
	}
	errs := make([]error, len(ws))
	var wg sync.WaitGroup
	for i, w := range ws {
		wg.Go(func() { errs[i] = s.syncOne(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Store) syncOne(w Appended) error {
	if err := w.Sync(); err != nil || !w.New {
		return err
	}
	return s.dir.Wait()
}

// appended says of h what Secure has to know, but for what was written.
func (r *rollout) appended(h *handle, intents, fresh bool) Appended {
	a := Appended{Rollout: r.id, Intents: intents, File: h, Path: h.Name(), New: fresh || !h.sure, Sync: h.Sync}
	if !a.New {
		a.Sync = func() error { return storefs.Datasync(h) }
	}
	return a
}

// runSecure calls Secure, not too often at the same time.
func (s *Store) runSecure(ws []Appended) error {
	select {
	case s.syncs <- struct{}{}:
	case <-s.quit.Done():
		return context.Cause(s.quit)
	}
	defer func() { <-s.syncs }()
	began := time.Now()
	err := s.secure(ws)
	if f := s.o.Observe.Sync; f != nil {
		f(time.Since(began))
	}
	return err
}
