// Package training is the store of the token ids of model calls: what a trainer needs of a rollout, in the files of NeMo Gym's token capture as of
// 0.7.0, so that Gym's own builder reads them and Gym's own store may write to them at the same time (capture.md 5.6).
//
// It promises that an intent whose Begin returned nil, and an entry whose Put returned nil, is in the file that its rollout's path names, also after
// a kill and after a power cut, however many processes write to the rollout; and that a rollout of which anything was lost is incomplete. It
// does not promise the reverse: what was not acknowledged may be there. It knows nothing of HTTP, dialects, metrics and the store of exchanges, and
// reports through Options.Observe.
//
// # Files
//
// A store is one flat folder, which may be that of package capture. It has up to five files for each rollout:
//
//	<id>.tokens.jsonl       the entries, one JSON object a line, in the order in which they became durable
//	<id>.tokens.intents     one call id a line: the call was about to be sent. One of spaces was withdrawn
//	<id>.tokens.state.json  what the file of entries cannot say: frozen, incomplete, retired; and an index of it
//	<id>.tokens.incomplete  a call id, or nothing, for each mark; for people: the state is what counts
//	<id>.tokens.lock        whose flock is held by whoever changes any of these; it outlives a delete
//
// Files are 0640, folders 0750. Rollout ids are what ValidID accepts, call ids what ValidCall does. What stands in the place of a file and is
// no regular file, a symbolic link for one, is refused and never followed. A file that begins with .tokens-state- is a state that somebody was writing
// when he died; it means nothing.
//
// # Entries
//
// A line has the 23 members of Gym's record, schema version 1, sorted by name, and rolltap behind response_id when there is something to say that Gym has no
// member for; Gym carries it along. Entry documents them. A line is canonical: spelled as Gym's writer spells what it reads, so that its SHA-256 tells whether two
// payloads are the same, whoever wrote them. Token ids and log probabilities are never decoded: ids keep their spelling, and log probabilities become
// the shortest spelling of their double. A text with half a character, and a value deeper than Gym's writer goes, is refused: Gym could not read the line, and with it
// none of the rollout.
//
// An entry of a resolved call may be a delta: its prompt is what stands behind prompt and generation of its parent. cum_len and digest are always those of
// the whole sequence, so that Chains, which puts prompts together again, can prove them. The store does not look at the parent: whoever makes a
// delta has held the prompt against the parent's digest (package tokendigest) first. With deltas the file of a rollout grows with its last sequence, and not with its square.
//
// A reader takes entries with unknown members and members in any order, and refuses every other schema version. It keeps 64 KiB of a member
// and locates the rest, and takes lines up to MaxLine.
//
// # Life of a rollout
//
//	Begin, Put, Withdraw        while it is live
//	Mark                        until it is retired: it is incomplete from now on
//	Freeze                      ends it and hands out a Snapshot; again the same one, with a higher version when it was marked meanwhile
//	Drop                        of exactly that snapshot and version: removes entries, intents and marker, and leaves a tombstone
//	Delete                      removes everything but the lock, whatever the rollout is, so that it begins anew
//	SweepRetired                removes old tombstones and their locks
//
// A frozen rollout refuses calls with ErrFrozen, a tombstone with ErrRetired. A snapshot is incomplete when the rollout was marked or an intent has no entry. Version counts entries, marks
// and the freeze. Put of an entry that is there is no error; of another payload under its call id it is ErrConflict, and the rollout is marked.
//
// # Writing
//
// Put encodes the line in the goroutine of its caller and queues it. One goroutine for each rollout that has something queued takes the intents and entries
// that have come meanwhile as one batch; anything else is done alone:
//
//	lock ─▶ is the state another one? ─▶ is the file? read what others appended ─▶ one write to each of the two files ─▶ Secure
//	     ─▶ do the paths still name the files? ─▶ unlock ─▶ acknowledge the batch
//
// There are no timers: what comes while one batch is made durable is the next. Options.Secure may put the batch into a journal in place of
// syncing its files; then a replay of that journal comes before the next reader behind a power cut. An entry of it never stands behind, or in the
// place of, bytes that nobody has made durable: what is appended behind others, and a torn tail that is cut off, has the file synced. Locks are polled and never waited for in the kernel. Behind a batch that held its lock for long the next one leaves it to others for a moment.
//
// The state is replaced by renaming a new one onto it, synced. It is written for freeze, mark, conflict and drop, before anybody is told. Beyond that it is only
// an index, so that nobody has to read the whole file, and is written when it lacks more than Options.Lazy bytes of entries and its rollout has been idle for 30 s, is
// forgotten, or the store is closed. It never has indexed what a power cut would take away: before it is written the file of entries is
// synced, whatever its lines rest on. What it lacks is read from the file by whoever comes next, Gym included.
//
// # Looking up
//
// Candidates finds the entries whose conversation has a fingerprint, for the request-time decision about the parent, in an index that is kept in memory and
// follows the file: a Put that has returned in any process is seen. It takes no lock.
//
// Peek reads what there is of a rollout that may be live, and Snapshot.WriteJSON writes it out with whole prompts. Neither takes a lock nor changes anything.
//
// # What a crash leaves behind
//
//	behind an intent               an intent without an entry: the rollout is incomplete. There is no way to know what was generated
//	inside an intent               the half of a line, which is cut off: nobody was told, and the call was never sent
//	inside an entry                a last line that is no JSON, which is cut off; its intent has no entry
//	behind an entry                an entry that the state lacks; it is read, made durable and counted by the next operation
//	before an entry's newline      the newline is added
//	inside a withdrawal            an intent without an entry, as if it had not been withdrawn; the same after a power cut
//	inside a freeze                a live rollout, or a frozen one
//	inside a mark                  a rollout that is incomplete, or as before; perhaps without the marker
//	inside a drop                  a tombstone with files beside it, which the next Drop, Delete or SweepRetired removes
//	inside a delete                entries may be gone and the state be there: ErrDamaged until the next Delete
//	a failed write or sync         the files as before the batch, when they can be cut back; else as behind a crash. The next batch opens them anew
//
// # Damage
//
// A line that is no entry in front of one that is, an entry of another rollout, a state that is none or has indexed what is not there: nobody who
// dies leaves that. It is ErrDamaged for Put, Withdraw and Freeze, and nothing is changed. Begin, which does not read the entries, and Mark pass. Freeze does not read again what
// the state has indexed; a Snapshot's reader finds what was changed in it afterwards, and so does Verify, which proves all there is without a lock.
//
// # Assumptions
//
// One host, or a file system whose flock works between hosts; fsync and fdatasync tell the truth; nobody changes the files without the lock. Where the
// system does not tell when a file was made, one that was deleted and made anew by another process may be taken for the old one by Candidates; a proof of
// the parent by its digest fails then.
package training
