// Package capture is the append-only store of exchanges: one file for each rollout, one line for each call, durable before
// the answer's end is shown to the client.
//
// It promises that a record whose Append returned nil is whole and in the file that its rollout's path names, also after a
// kill or a power cut, however many processes write to the rollout. It does not promise the reverse: a record that was not
// acknowledged may be there. It knows nothing of HTTP, dialects or metrics; it reports through Options.Observe.
//
// # Files
//
// A store is one flat folder. Everything in it that does not start with a dot is one of these:
//
//	<id>.capture.jsonl       the records, one JSON object a line, in the order in which they became durable
//	<id>.capture.incomplete  the rollout lacks a record: lines {"call_id","at","stage","error"}; readers ask only whether it exists
//	<id>.capture.damaged     lines that Repair moved out of the data file, as they were
//
// Files are 0640, folders 0750. Ids are what ValidID accepts. Nothing is written before there is something to keep. Spool
// files of large bodies lie in the temporary folder and have no name.
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
//   - A line never becomes longer than MaxLine. A text takes at most five quarters of its copy's Max, or 1 MiB where that is
//     more, escapes counted: what is behind is cut off between two characters. All members together are bounded, too, text
//     first. Whatever was cut, by the copy or by the line, is named in rolltap.truncated.
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
//	lock ─▶ is it the file that the path names? ─▶ last byte: torn? ─▶ one write ─▶ fsync ─▶ new file: fsync of the folder
//	     ─▶ does the path still name it? ─▶ unlock ─▶ acknowledge the batch
//
// Whatever comes while one fsync runs is the next batch; there are no timers. Lines longer than 1 MiB are streamed into the
// file instead of being built. At most Options.Syncs batches are written at a time.
//
// The lock is opened by its path for every batch. The descriptor that is written to may be one that was kept: when the locked
// file has a name and is the one that the descriptor has open, since a descriptor keeps its file's number from being used
// again. At most Options.Files are kept, for 300 ms after their last batch, so that a quiet store has nothing open and its
// volume can be remounted; one that had an error is closed at once, so that an error is never carried over.
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
// again, because a second sync may lie and a second copy would be a record twice. In both cases the batch is lost: its
// callers get the error, the rollout is marked, and the next batch begins with what it finds. A record whose caller's
// context ended is late when it becomes durable all the same, else lost; either way the rollout has been marked.
//
// # What a crash leaves behind
//
//	a kill                      every acknowledged record; perhaps whole records that nobody was told of; perhaps one torn tail
//	                            in each file, which the next batch, of whatever process, ends with a newline
//	a power cut                 the same, and perhaps NUL bytes where unacknowledged bytes were: readers skip them in front of a
//	                            record, Verify names them
//	a full disk                 the file as before the batch; when it cannot be cut back, a torn tail; a marker as soon as there is room
//	an I/O error of fsync       a batch that nobody was told of, whole, in part or not at all
//	a clear while writing       records acknowledged before it are gone, those after it are in the new file
//	folder removed or renamed   records acknowledged before are where the folder went; the folder is made anew for the next batch, and
//	                            a batch that was being written is taken back there and written here
//	a foreign writer that holds the lock and dies   nothing: the kernel gives the lock back, its torn tail is ended
//	a copy made while running   whole records and at most one torn tail in each file
//	a kill of Repair            the old file, perhaps with damaged lines that .capture.damaged holds already, and a dot file
//
// # Assumptions
//
// One host, or a file system whose flock works between hosts; fsync tells the truth; nobody writes to a data file without
// its lock.
package capture
