// Package capture is the append-only store of exchanges: one file for each rollout, one line for each call, durable before
// the answer's end is shown to the client.
//
// It promises that a record whose Append returned nil is whole and in the file that its rollout's path names, also after a
// kill, however many processes write to the rollout. After a power cut it is there, too: at once under DurabilityFile, and
// under DurabilityJournal when the journal was replayed, which Open does, and Replay for whoever only reads. It does not
// promise the reverse: a record that was not acknowledged may be there. It knows nothing of HTTP, dialects or metrics; it reports through Options.Observe.
//
// # Files
//
// A store is one flat folder. Everything in it that does not start with a dot is one of these:
//
//	<id>.capture.jsonl       the records, one JSON object a line, in the order in which they became durable
//	<id>.capture.incomplete  the rollout lacks a record: lines {"call_id","at","stage","error"}; readers ask only whether it exists
//	<id>.capture.damaged     lines that Repair moved out of the data file, as they were
//	<id>.capture.sealed      no further call belongs to the rollout; readers ask only whether it exists
//
// Beside them lie the token files of package training, for which it does no more than Secure and Replay say. .open is held open by every process that has calls in flight: a locked byte stands
// for a rollout, and a file that nobody locks means nothing.
//
// Under DurabilityJournal there is one folder more while there is load. A store at rest, or closed, has none of it:
//
//	.journal/<writer>/lock          its flock is held by the process that writes this journal, as long as there are segments
//	.journal/<writer>/NNNNNNNN.seg  entries: lines of records, tokens or intents with the file and the offset where they belong;
//	                                segment.go shows the bytes
//	.journal/damaged-…              a segment that a replay could not read to its end, kept for people to look at
//
// Files are 0640, folders 0750, or what Options.Mode makes of that, whatever the umask. Ids are what ValidID accepts. Nothing
// is written before there is something to keep. Spool files of large bodies lie in the temporary folder and have no name.
//
// A symbolic link, folder, pipe, socket or device in the place of any of these files, or of the folder of journals, is never opened, read or
// written (open.go): a record that meets one is lost, its rollout marked, and a mark that meets one is tried again until
// Close says that it could not be made. Only the folder of the store itself may be a link.
//
// # Record
//
// Members in this order: model_call_id, dialect, model_ref, started_at, completed_at, latency_ms, latency_ttft_ms,
// status_code, error_category, request, response; client_session_id only when the client sent one; upstream_attempted,
// response_source, upstream_status_code, local_response_reason; request_raw and response_raw only when needed; rolltap.
// Times are Unix seconds, durations milliseconds with two decimals.
//
//   - request and response are the bytes that passed, validated and without insignificant white space: large integers, lone
//     surrogates, the order of members and the spelling of numbers survive. They are null unless the body is a whole JSON
//     object.
//   - A non-empty body that is no JSON object, or was cut, is text in request_raw or response_raw, with U+FFFD for what is not
//     UTF-8. The text of an event stream is always kept there, beside its folded object. RawAlways keeps every text, RawNever
//     none.
//   - A line never becomes longer than MaxLine. A text takes at most five quarters of its copy's Max, or 16 MiB where that is
//     more, escapes counted: what is behind is cut off between two characters. All members together are bounded, too, text
//     first. Whatever was cut, by the copy or by the line, is named in rolltap.truncated.
//   - rolltap.tokens is there only where tokens were asked for; see package training, which keeps them.
//   - rolltap.writer and rolltap.seq: a writer is one unbroken memory of a rollout, six random characters made by Open. seq
//     counts up by one from 1 under it, in the order of the lines, so a gap proves a lost record. A store remembers its last
//     16,384 idle rollouts; once it has had to forget one, rollouts that it meets anew get the writer with "-" and a number
//     behind it, so that (writer, seq) stays unique in each file.
//
// # Writing
//
// Append encodes the line in the goroutine of its caller and queues it. One goroutine for each rollout that has something
// queued takes all of it as the next batch:
//
//	lock ─▶ is it the file that the path names? ─▶ last byte: torn? ─▶ one write ─▶ secure ─▶ new file: fsync of the folder
//	     ─▶ does the path still name it? ─▶ unlock ─▶ acknowledge the batch
//
// Whatever comes while one batch is secured is the next; there are no timers. Lines longer than 1 MiB, and those that
// Options.Lines has no memory for, are streamed into the file instead of being built. At most Options.Syncs files are synced at a time.
//
// The lock is opened by its path for every batch. The descriptor that is written to may be one that was kept: when the locked
// file has a name and is the one that the descriptor has open, since a descriptor keeps its file's number from being used
// again. At most Options.Files are kept, for 300 ms after their last batch, so that a quiet store has nothing open and its
// volume can be remounted; one that had an error is closed at once, so that an error is never carried over.
//
// # Durability
//
// To secure a batch is to sync the file that it was written to. That is all there is under DurabilityFile. Under DurabilityAsync nobody
// waits for that sync, which comes within about a second, one for all batches of that time.
//
// Under DurabilityJournal the batch may instead become one entry of the journal of this process. Entries of all rollouts that
// wait at the same time are written and synced together, by one fdatasync. That is done when at least four records and token files
// are on their way and this store has synced the file before, so that its inode and its name are durable. A new file, a lone record,
// a batch of 128 KiB or more, and every file where the system does not tell when it was made, is synced itself.
//
// The line stands in the rollout's file in either case before anybody is told, so readers beside a running store need no
// journal. An entry names device, inode, birth and generation of the file, the offset, and the bytes, under a checksum.
// A segment is sealed when it has 64 MiB, is 30 s old, or was not used for 500 ms, and after any error. Then the files that it
// is about are synced and it is removed. A file that cannot be synced keeps it, and is written anew from it before it is
// tried again.
//
// A replay takes the lock of each journal, which fails while its owner lives, and under the lock of each rollout's file writes
// what is not there to where it belongs. Where something else stands there by now it appends the calls that the file lacks.
// A file that is another one, because it was cleared, repaired or copied, gets nothing. Then the files are synced and the
// journal is removed. A replay may be killed and run again; nothing is ever there twice. Open gives it a minute, and Repair
// begins with one, since a file that it has replaced is another one.
//
// What package training appends to token files rests on the same: Secure makes an entry of it, or has the file synced, and the line stands in
// the file before that. Under DurabilityAsync token files are synced, since an intent has to be durable before its call is sent. A replay takes the lock
// of token files, cuts off a torn tail where it appends, leaves withdrawn intents withdrawn, and gives a frozen rollout only what its state
// has indexed (restoretokens.go). Rollouts whose tokens rest on the journal of a living writer may be frozen by others: what their state has
// indexed comes back into its place.
//
// # Lock protocol
//
// Whoever changes a data file holds the exclusive flock of that file, from before it looks at the last byte until what it
// wrote is synced. A lock counts only on the file that the path names: clear removes files and repair replaces them while
// others wait for the lock, so the path is looked at again behind it. The lock is polled, never waited for in the kernel,
// so a lock that somebody holds for long stops its rollout and nothing else. Readers take no lock: they see whole lines and
// at most one that is being written, which they call torn.
//
// # Failures
//
// After a failed write the file is cut back to where it was. After a failed sync nothing is touched and nothing is tried
// again, because a second sync may lie and a second copy would be a record twice. An error of the journal is one of every
// batch that waited for the same sync; the next goes to a new segment. In all cases the batch is lost: its callers get the
// error, the rollout is marked, and the next batch begins with what it finds. A record whose caller's context ended is late
// when it becomes durable all the same, else lost; either way the rollout has been marked.
//
// # What a crash leaves behind
//
//	a kill                      every acknowledged record; perhaps whole records that nobody was told of; perhaps one torn tail
//	                            in each file, which the next batch, of whatever process, ends with a newline
//	                            journal: and the folder of the dead writer, which the next Open, Replay or Repair takes away
//	a power cut                 file: the same, and perhaps NUL bytes where unacknowledged bytes were: readers skip them in front of
//	                            a record, Verify names them
//	                            async: acknowledged records of the last second may be missing as well, also of the second in front
//	                            of a kill shortly before, and nothing tells
//	                            journal: the same once it was replayed; until then files may lack acknowledged lines, or hold NUL
//	                            bytes in their place
//	a full disk                 the file as before the batch; when it cannot be cut back, a torn tail; a marker as soon as there is room
//	                            journal: where only the journal finds no room, a batch as below
//	an I/O error of a sync      a batch that nobody was told of, whole, in part or not at all
//	                            journal: the batches of all rollouts that waited for that sync; an error behind everybody's back,
//	                            when a segment is retired, loses nothing: Options.Observe.Trouble tells, and the segment stays
//	a clear while writing       records acknowledged before it are gone, those after it are in the new file
//	                            journal: nothing comes back from it, whenever it is replayed
//	folder removed or renamed   records acknowledged before are where the folder went; the folder is made anew for the next batch, and
//	                            a batch that was being written is taken back there and written here
//	                            journal: batches that waited for a segment which has gone are lost, and said to be; it is replayed
//	                            where the folder went
//	a foreign writer that holds the lock and dies   nothing: the kernel gives the lock back, its torn tail is ended
//	                            journal: a replay waits for a lock that is held, as long as its context lasts, and then leaves
//	                            that journal for the next time
//	a foreign writer behind a loss   journal: lines that have lost their place are appended behind what it wrote
//	a copy made while running   whole records and at most one torn tail in each file, with or without the folder of journals,
//	                            which means nothing to a copy and is removed by its first replay
//	a copy of a store that lost power   file: as above. journal: not before it was replayed. A copied file is another file; what
//	                            only the journal has does not get into it. An image of the whole file system is no such copy
//	a kill of Repair            the old file, perhaps with damaged lines that .capture.damaged holds already, and a dot file
//
// # Assumptions
//
// One host, or a file system whose flock works between hosts; fsync and fdatasync tell the truth; nobody writes to a data file
// without its lock. Of a file that is written to by several processes, each sees the errors of its own syncs.
package capture
