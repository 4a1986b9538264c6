package proxy

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"rolltap/capture"
	"rolltap/rewrite/dialect"
)

// Headers that rolltap sets on answers.
const (
	headerCallID = "X-Rolltap-Call-Id"
	headerError  = "X-Rolltap-Error"
)

// forwardedHeaders are taken off by ReverseProxy before Rewrite runs; pass-through gives them back as sent.
func forwardedHeaders() [4]string {
	return [4]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}
}

// outHeaders turns the client's headers, hop-by-hop ones already removed, into those of the upstream request.
func (x *exchange) outHeaders(in, out http.Header) {
	for _, name := range forwardedHeaders() {
		if v, ok := in[name]; ok {
			out[name] = v
		}
	}
	// The server has answered it already, or will when the body is asked for.
	out.Del("Expect")
	if _, ok := out["X-Request-Id"]; !ok && x.callID != "" {
		out.Set("X-Request-Id", x.callID)
	}
	switch {
	case x.h.upstreamKey != "":
		out.Del("Authorization")
		out.Del("X-Api-Key")
		setCredential(out, x.upstreamDialect(), x.h.upstreamKey)
	case x.clientToken != "":
		// The token that let the client in is ours and means nothing to the upstream.
		if bearer(out) == x.clientToken {
			out.Del("Authorization")
		}
		if out.Get("X-Api-Key") == x.clientToken {
			out.Del("X-Api-Key")
		}
	}
}

func setCredential(h http.Header, d dialect.Name, key string) {
	if d == dialect.Messages {
		h.Set("X-Api-Key", key)
		return
	}
	h.Set("Authorization", "Bearer "+key)
}

func bearer(h http.Header) string {
	scheme, token, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// matchToken returns the token of the list that the request presents, in time that does not tell how much of it is right.
func matchToken(h http.Header, tokens []string) (string, bool) {
	presented := [2]string{bearer(h), h.Get("X-Api-Key")}
	match := ""
	for _, t := range tokens {
		for _, p := range presented {
			if subtle.ConstantTimeCompare([]byte(t), []byte(p)) == 1 {
				match = t
			}
		}
	}
	return match, match != ""
}

// isEventStream tells by the media type, without regard to case or parameters.
func isEventStream(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// oneValue returns the value of a header that was sent once, or several times with the same value; empty ones do not count.
func oneValue(h http.Header, name string) string {
	one := ""
	for _, v := range h[http.CanonicalHeaderKey(name)] {
		if v == "" {
			continue
		}
		if one != "" && v != one {
			return ""
		}
		one = v
	}
	return one
}

func firstOf(h http.Header, names ...string) string {
	for _, n := range names {
		if v := oneValue(h, n); v != "" {
			return v
		}
	}
	return ""
}

// clientOf reads who called: harnesses name their session, agent and parent agent in headers of their own
// (Claude Code x-claude-code-*, Codex session-id, thread-id and x-codex-parent-thread-id).
func clientOf(h http.Header) capture.Client {
	return capture.Client{
		Session:     firstOf(h, "X-Session-Id", "X-Claude-Code-Session-Id", "Session-Id", "Session_id"),
		Agent:       firstOf(h, "X-Claude-Code-Agent-Id", "Thread-Id"),
		ParentAgent: firstOf(h, "X-Claude-Code-Parent-Agent-Id", "X-Codex-Parent-Thread-Id"),
		UserAgent:   h.Get("User-Agent"),
	}
}

// redactQuery replaces the values of parameters that carry credentials; everything else stays as sent.
func redactQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var b strings.Builder
	for len(raw) > 0 {
		i := strings.IndexAny(raw, "&;")
		part, sep := raw, ""
		if i >= 0 {
			part, sep, raw = raw[:i], raw[i:i+1], raw[i+1:]
		} else {
			raw = ""
		}
		key, _, found := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(key); err == nil && found && secretParam(name) {
			part = key + "=***"
		}
		b.WriteString(part)
		b.WriteString(sep)
	}
	return b.String()
}

func secretParam(name string) bool {
	switch strings.ToLower(name) {
	case "key", "api_key", "api-key", "apikey", "access_token", "token", "secret", "password", "signature", "sig":
		return true
	}
	return false
}
