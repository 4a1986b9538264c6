package protocol

// EntryStep is what is done for entries that wait for one sync of the journal.
type EntryStep uint8

const (
	MakeSegment  EntryStep = iota // in a folder whose lock is ours
	SyncSegments                  // the names in the folder
	WriteEntries
	SyncEntries
	LookSegment // whether the segment is where a replay looks for it
	Commit      // the end: they are durable
	Refuse      // the end: nothing may be said to rest on them
)

// Entries is what has to be known of entries that are written together.
type Entries struct {
	Do   EntryStep
	Seal bool // the segment gets no more entries: what failed may be in it, and a second sync of it may lie
}

// BeginEntries is entries of which nothing was done. segment says that there is one that can be written on.
func BeginEntries(segment bool) Entries {
	if segment {
		return Entries{Do: WriteEntries}
	}
	return Entries{Do: MakeSegment}
}

// Ended reports whether there is nothing left to do.
func (e Entries) Ended() bool { return e.Do >= Commit }

// Next is the entries behind their step.
func (e Entries) Next(s Saw) Entries {
	if s != Done || e.Ended() {
		return Entries{Do: Refuse, Seal: e.Do >= WriteEntries}
	}
	e.Do++
	return e
}

// RetireStep is what is done with a segment.
type RetireStep uint8

const (
	Keep          RetireStep = iota // it is written on, or entries are on their way to being acknowledged
	SyncRollouts                    // the files that it is about
	RemoveSegment                   // every file is durable, or has gone
)

// Retire says what is done with a segment: open of its entries are neither acknowledged nor forsaken, and the files of
// left rollouts have acknowledged lines of it that may not be durable.
func Retire(sealed bool, open, left int) RetireStep {
	switch {
	case !sealed || open > 0:
		return Keep
	case left > 0:
		return SyncRollouts
	}
	return RemoveSegment
}

// Trust reports whether a rollout's file is durable behind a sync for a segment. synced is what the sync said. failed counts the
// syncs of this file that failed since it was last durable, and anew how many of them were known when everything that the
// journal holds for it was written again, 0 when that was not done. What failed has dropped, a later sync does not bring back.
func Trust(synced bool, anew, failed int) bool { return synced && anew == failed }
