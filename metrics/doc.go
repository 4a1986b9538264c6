// Package metrics counts and times what rolltap does, for Prometheus.
//
// It owns its registry: nothing is global, so two servers in one test do not
// share counters. There is one method for each thing that happens, never a raw
// vector, so this list and the code cannot drift apart (a test compares them).
//
// Label values come from closed lists of words. A word that is not in its list
// is counted under "other": neither a client nor an upstream can add a series.
// All words of a list get their series at once, so a rate is right from the
// first event on: requests_total when a pair of dialects is first used,
// everything else at start. Rollout ids and model names are never labels.
//
// # Exchanges
//
//	rolltap_requests_total{dialect,upstream_dialect,outcome}
//		counter. Model calls that ended. upstream_dialect is none when nothing
//		was sent upstream. outcome is the word of the record and of the log
//		line: ok, client_gone, upstream_cut, upstream_error,
//		upstream_timeout, refused, aborted.
//	rolltap_in_flight_requests
//		gauge. Requests on the proxy port, of whatever kind, now.
//	rolltap_request_duration_seconds
//		histogram. From the request's head to the end of the answer; every
//		model call.
//	rolltap_time_to_first_token_seconds
//		histogram. Streams only: to the first content, tool or reasoning
//		delta. Pings and opening events do not count. A stream without such
//		a delta is not observed.
//	rolltap_inter_chunk_seconds
//		histogram. Gap between two chunks of a stream.
//	rolltap_overhead_seconds
//		histogram. Time of an exchange that was rolltap's own and not spent
//		waiting for the upstream or the client. Not observed when unknown.
//	rolltap_prompt_tokens
//	rolltap_generation_tokens
//		histograms, tokens. One observation for each exchange whose usage is
//		known; the prompt includes cached tokens.
//	rolltap_finish_total{finish_reason}
//		counter. Answers that said why they ended, in Chat's words: stop,
//		length, tool_calls, function_call, content_filter, abort, other.
//		Cuts and errors are in rolltap_requests_total.
//	rolltap_losses_total{reason}
//		counter. Things a translation had to leave out, each as in the
//		record: no_equivalent, policy, foreign, unknown.
//	rolltap_keepalives_total{dialect}
//		counter. Keep-alives sent into silent streams.
//	rolltap_uncaptured_requests_total{reason}
//		counter. Model calls that got no record because none was possible:
//		no_prefix, capture_off, invalid_rollout_id.
//
// # Capture
//
//	rolltap_capture_records_total{result}
//		counter. One for each record: ok (durable in time), late (arrived
//		after the answer could wait no longer), lost.
//	rolltap_capture_truncated_total{body}
//		counter. Bodies that a record does not hold whole, once for each that
//		its member truncated names: request, response, upstream.request,
//		upstream.response. Counted when the line is made, whatever becomes of
//		it.
//	rolltap_capture_commit_seconds
//		histogram. One batch from lock to durable.
//	rolltap_capture_fsync_seconds
//		histogram. One sync of a data file or, for all rollouts that wait, of the journal.
//	rolltap_capture_batch_records
//		histogram, records. How many records shared one fsync.
//	rolltap_capture_lock_wait_seconds
//		histogram. Wait for the lock of a data file.
//	rolltap_capture_bytes_total
//		counter, bytes. Written to data files.
//	rolltap_capture_incomplete_total
//		counter. Incomplete marks: a rollout lost a record.
//	rolltap_store_low_total
//		counter. Times that the free space fell below --store-min-free, as
//		far as a call or a probe was there to notice.
//	rolltap_store_removed_rollouts_total
//	rolltap_store_removed_bytes_total
//		counters. Rollouts that --keep has removed, and the bytes of their
//		files.
//	rolltap_store_free_bytes
//		gauge, bytes. Free space of the store's file system, read when it is
//		scraped. Absent while it is unknown or there is no store.
//
// # Token capture
//
//	rolltap_token_calls_total{result}
//		counter. One for each call under token capture that was begun: ok when
//		its ids and log probabilities are in the store, else why not, as in
//		the record: no_token_ids, no_prompt_ids, no_logprobs,
//		logprobs_mismatch, count_mismatch, invalid_ids, invalid_logprobs,
//		several_choices, conflicting_sources, truncated, hidden_reasoning,
//		too_large, unreadable, upstream_error, context_overflow, client_gone,
//		not_asked, store. Each of them masks the rollout; failed does not: a
//		call that left no answer which a later prompt could hold.
//	rolltap_captured_tokens_total
//		counter, tokens. Generated ones that are in the store.
//	rolltap_trainable_tokens_total
//		counter, tokens. Those of them whose call is the first of its
//		conversation or continues a known one.
//	rolltap_token_unseen_requests_total
//		counter. Requests under the training prefix that were no model calls
//		and may have generated what nobody captured: each marks its rollout.
//
// # Program
//
//	rolltap_log_dropped_lines_total
//		counter. Log lines that were not written, because whoever reads the log
//		did not take them: nobody waits for it.
//	rolltap_build_info{version,commit,go_version}
//		gauge, always 1.
//
// Beside these there are the go_* and process_* series of the Prometheus client
// library. The buckets equal those of vLLM's series of the same meaning, so that
// both can be subtracted; see buckets.go.
package metrics
