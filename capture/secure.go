package capture

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"rolltap/capture/protocol"
)

// Appended is what was just written behind the end of a token file by whoever holds the rollout's lock of them.
type Appended struct {
	Rollout string
	Part    Part
	File    syscall.Conn // a descriptor of the file
	Offset  int64        // where it begins
	Data    []byte       // whole lines, all that was written; nil: it is not at hand, and the file is to be synced
	Lines   int
	// New: the file's name, or what is in front of Offset, may neither be durable nor in a journal of this store.
	New bool
	// Sync makes all of the file's content durable. It is called at most once.
	Sync func() error
}

// Secure makes durable what was appended to token files of one rollout, as records are made durable: under DurabilityJournal by an
// entry of the journal, when enough is on its way, the data is at hand and shorter than what is not written twice, and the file is
// not New and can be told from every other; else by a sync of the file and, when it is New, of the folder. Under DurabilityAsync the file is
// synced, too: an intent has to be durable before its call is sent.
//
// nil promises that all of it would survive a power cut, by a replay where it rests on the journal. After an error nothing may be said to rest
// on it; the caller cuts it off and comes with New for what it writes there next. The lines may come back with a replay all the same. The caller looks
// itself whether the paths still name the files. It returns before the lock is given back.
func (s *Store) Secure(files []Appended) error {
	s.count(len(files))
	defer s.count(-len(files))
	if len(files) == 1 {
		return s.secureFile(&files[0])
	}
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() { errs[i] = s.secureFile(&files[i]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Store) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.securing += n
}

// secureFile does what protocol.Batch says of a batch that is written.
func (s *Store) secureFile(a *Appended) error {
	name := nameOf(a.Rollout, a.Part)
	if a.Part == partRecords || !name.valid() {
		return fmt.Errorf("%w: %q", ErrInvalidID, name)
	}
	mode := s.mode
	if mode == protocol.Async {
		mode = protocol.File
	}
	var id fileID
	var failed error
	sure := mode == protocol.Journal && !a.New && len(a.Data) > 0 && len(a.Data) < journalTo
	if sure {
		var err error
		switch id, err = identityOf(a.File); {
		case errors.Is(err, errNoBirthTime):
			sure = false
		case err != nil:
			return err
		}
	}
	p := protocol.Written(mode, !a.New, sure)
	for !p.Ended() && p.Do != protocol.LookName {
		e := protocol.Event{Saw: protocol.Done}
		var err error
		switch p.Do {
		case protocol.Write: // it has
			e.Whole = sure
			e.Crowded = sure && s.crowded()
		case protocol.SyncFile:
			err = s.sync(a.Sync)
		case protocol.Enter:
			var ref *segmentRef
			ref, err = s.journal.commit(&journalEntry{name: name, file: id, offset: a.Offset, lines: a.Lines, data: a.Data})
			if err == nil {
				ref.applied(name)
			}
		case protocol.SyncFolder:
			if err = s.dir.Wait(); err != nil {
				err = fmt.Errorf("sync the folder: %w", err)
			}
		default:
			err = errUnfinished
		}
		if failed = err; err != nil {
			e.Saw = protocol.Failed
		}
		p = p.Next(e)
	}
	if p.Doubt && s.journal != nil { // what the journal holds of this file stood on the same pages
		s.journal.doubt(name)
	}
	return failed
}
