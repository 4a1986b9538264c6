package capture

import (
	"context"
	"path/filepath"
	"time"

	"rolltap/capture/protocol"
)

// Durability says what a record rests on when Append returns nil. Its line stands in the rollout's file in any case.
type Durability string

const (
	// DurabilityFile has synced the rollout's file. The empty string means the same.
	DurabilityFile Durability = "file"
	// DurabilityJournal has synced that file, or one journal for all rollouts. Which of the two depends on what is cheaper at
	// that moment; both survive a power cut, the journal by a replay before the store is used again.
	DurabilityJournal Durability = "journal"
	// DurabilityAsync has written the line and syncs the file within about a second. A kill takes nothing, a power cut may.
	DurabilityAsync Durability = "async"
)

const (
	// journalFrom is how many records, and batches of token files, have to be on their way for the journal to be used. Fewer are
	// synced in their own files: a lone record would pay for a segment and for its file.
	journalFrom = 4
	// journalTo is how many bytes of a batch it takes for writing them twice to cost more than a sync that is shared with nobody.
	journalTo = 128 << 10
	// replayTime bounds the replay at the start of a store. What is left is left for the next start.
	replayTime = time.Minute
)

// Replay brings back what dead writers had promised and a power cut has taken from the rollouts' files, see doc.go. Who reads
// a store or repairs it calls it first; a Store does so when it is opened. A store without journals, or a folder that does
// not exist, is left alone. report may be nil.
func Replay(ctx context.Context, dir string, report func(ReplayEvent)) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return replayJournals(ctx, dir, report)
}

// crowded reports whether so much is on its way that the journal is cheaper than a sync of each file.
func (s *Store) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records+s.securing >= journalFrom
}

// openJournal replays what dead writers left and prepares our own.
func (s *Store) openJournal() {
	ctx, cancel := context.WithTimeout(context.Background(), replayTime)
	defer cancel()
	if err := replayJournals(ctx, s.o.Dir, s.o.Observe.Replay); err != nil && s.o.Observe.Trouble != nil {
		s.o.Observe.Trouble("", err)
	}
	switch s.o.Durability {
	case DurabilityJournal:
		s.mode = protocol.Journal
	case DurabilityAsync:
		s.mode = protocol.Async
		s.lazy = newLazy(func(rollout string) error { return syncFile(dataPath(s.o.Dir, rollout)) }, func(rollout string, err error) {
			// Which of its records the disk lacks nobody knows.
			s.failed(rollout, err)
			s.Mark(rollout, "", "sync", err)
		})
		return
	default:
		return
	}
	s.journal = newJournal(journalOptions{
		dir: s.o.Dir, writer: s.rollouts.base, mode: s.o.Mode, synced: s.o.Observe.Fsync,
		trouble: func(rollout string, err error) {
			if f := s.o.Observe.Trouble; f != nil {
				f(rollout, err)
			}
		},
	})
}
