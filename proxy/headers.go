package proxy

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"rolltap/capture"
	"rolltap/rewrite/canon"
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
		if v, ok := in[name]; ok && !namedByConnection(in, name) {
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
		out.Del("X-Goog-Api-Key")
		setCredential(out, x.upstreamDialect(), x.h.upstreamKey)
	case x.h.tokens != nil:
		ours := func(token string) bool { return isOneOf(x.tokens, token) }
		dropValues(out, "Authorization", func(v string) bool { return ours(bearerToken(v)) })
		dropValues(out, "X-Api-Key", ours)
		dropValues(out, "X-Goog-Api-Key", ours)
	}
}

// namedByConnection reports whether the client declared the header to be for this hop only (RFC 9110 7.6.1).
func namedByConnection(h http.Header, name string) bool {
	for _, v := range h["Connection"] {
		for option := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

// dropValues takes those values of a header off that are ours; a client may send more than the one that let it in.
func dropValues(h http.Header, name string, ours func(value string) bool) {
	kept := slices.DeleteFunc(slices.Clone(h[name]), ours)
	if len(kept) == 0 {
		delete(h, name)
	} else {
		h[name] = kept
	}
}

func setCredential(h http.Header, d canon.Dialect, key string) {
	if d == canon.Messages {
		h.Set("X-Api-Key", key)
		return
	}
	h.Set("Authorization", "Bearer "+key)
}

// bearerToken is the token of an Authorization header, "" when it is of another kind.
func bearerToken(authorization string) string {
	scheme, token, ok := strings.Cut(authorization, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// presents reports whether the request presents a token of the list.
func presents(h http.Header, tokens []string) bool {
	bearer := isOneOf(tokens, bearerToken(h.Get("Authorization")))
	google := isOneOf(tokens, h.Get("X-Goog-Api-Key"))
	return isOneOf(tokens, h.Get("X-Api-Key")) || bearer || google
}

// isOneOf takes a time that does not tell how much of the token is right.
func isOneOf(tokens []string, token string) bool {
	found := 0
	for _, t := range tokens {
		found |= subtle.ConstantTimeCompare([]byte(t), []byte(token))
	}
	return found == 1
}

// isEventStream tells by the media type, without regard to case or parameters.
func isEventStream(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// oneValue returns the text of a header that was sent once, or several times with the same value; empty ones do not count. The
// name is spelled as net/http spells it.
func oneValue(h http.Header, name string) string {
	one := ""
	for _, v := range h[name] {
		if v == "" {
			continue
		}
		if one != "" && v != one {
			return ""
		}
		one = v
	}
	return latin1(one)
}

// latin1 is the text of a header's value, whose bytes are Latin-1 to the capture format, what clients may mean by UTF-8 included: any bytes
// are text that way, and two values are the same text only when they are the same bytes.
func latin1(value string) string {
	i := 0
	for i < len(value) && value[i] < utf8.RuneSelf {
		i++
	}
	if i == len(value) {
		return value
	}
	text := append(make([]byte, 0, 2*len(value)), value[:i]...)
	for ; i < len(value); i++ {
		text = utf8.AppendRune(text, rune(value[i]))
	}
	return string(text)
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
		UserAgent:   latin1(h.Get("User-Agent")),
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
