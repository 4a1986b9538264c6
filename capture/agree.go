package capture

import (
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
)

// recordMembers are the members of a record that verifying looks at, in the order of the constants below.
func recordMembers() []string {
	return []string{"model_call_id", "dialect", "started_at", "completed_at", "latency_ms", "latency_ttft_ms", "error_category",
		"client_session_id", "upstream_attempted", "response_source", "upstream_status_code", "local_response_reason", "rolltap"}
}

const (
	memberCallID = iota
	memberDialect
	memberStarted
	memberCompleted
	memberLatency
	memberFirst
	memberCategory
	memberSession
	memberAttempted
	memberSource
	memberUpstreamStatus
	memberReason
	memberOwn
	memberCount
)

// disagreements tells of each pair of members in a record of ours that cannot both be true. Whoever changed one of them did not know of
// the other. Details name members, never what stands in them.
func disagreements(rollout string, m *[memberCount][]byte, tell func(detail string)) {
	var own [6][]byte
	jsonx.GetAll(m[memberOwn], []string{"rollout_id", "path", "outcome", "upstream", "usage", "client"}, own[:])
	is := func(raw []byte, word string) bool { s, ok := jsonx.Text(raw); return ok && s == word }
	if id, ok := jsonx.Text(own[0]); ok && id != rollout {
		tell("rolltap.rollout_id names another rollout than the file")
	}
	if later(m[memberStarted], m[memberCompleted]) {
		tell("started_at is after completed_at")
	}
	if later(m[memberFirst], m[memberLatency]) {
		tell("latency_ttft_ms is more than latency_ms")
	}
	for path, dialect := range map[string]string{"/v1/messages": "messages", "/v1/responses": "responses", "/v1/chat/completions": "chat"} {
		if is(own[1], path) && !is(m[memberDialect], dialect) {
			tell("dialect is not that of rolltap.path")
		}
	}
	if path, ok := jsonx.Text(own[1]); ok && strings.HasPrefix(path, "/v1beta/models/") && !is(m[memberDialect], "gemini") {
		tell("dialect is not that of rolltap.path")
	}
	category, failed := jsonx.Text(m[memberCategory])
	if is(own[2], "ok") && failed && category != "incomplete" && category != "capture_parse_error" && category != "context_length_exceeded" {
		tell("rolltap.outcome is ok and error_category is an error")
	}
	sent := !jsonx.IsNull(own[3])
	if is(m[memberSource], "local") && jsonx.IsNull(m[memberReason]) {
		tell("response_source is local and local_response_reason is null")
	}
	if string(m[memberAttempted]) == "false" && (sent || !jsonx.IsNull(m[memberUpstreamStatus])) {
		tell("upstream_attempted is false and the upstream is told of")
	}
	if status := jsonx.Get(own[3], "status"); sent && string(orNull(status)) != string(orNull(m[memberUpstreamStatus])) {
		tell("rolltap.upstream.status is not upstream_status_code")
	}
	if later(jsonx.Get(own[4], "cached_tokens"), jsonx.Get(own[4], "prompt_tokens")) {
		tell("rolltap.usage has more cached tokens than prompt tokens")
	}
	if session, ok := jsonx.Text(m[memberSession]); ok && !is(jsonx.Get(own[5], "session"), session) {
		tell("client_session_id is not rolltap.client.session")
	}
}

// later compares numbers; one that is none is not.
func later(a, b []byte) bool {
	if jsonx.KindOf(a) != jsonx.KindNumber || jsonx.KindOf(b) != jsonx.KindNumber {
		return false
	}
	x, err1 := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	return err1 == nil && err2 == nil && x > y
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
