package proxy

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// mayBecome lists what the path of a target may have become at the upstream: itself, and itself without one prefix.
func mayBecome(path string) []string {
	all := []string{path}
	segment := func(s string) (word, rest string, ok bool) {
		if !strings.HasPrefix(s, "/") {
			return "", "", false
		}
		end := strings.IndexByte(s[1:], '/')
		if end < 0 {
			return "", "", false
		}
		word = s[1 : 1+end]
		if plain, err := url.PathUnescape(word); err == nil {
			word = plain
		}
		return word, s[1+end:], true
	}
	if word, rest, ok := segment(path); ok && word == "ng-rollout" {
		if id, rest, ok := segment(rest); ok && id != "" {
			all = append(all, rest)
			if word, rest, ok := segment(rest); ok && word == "training-token-capture" {
				all = append(all, rest)
			}
		}
	}
	return all
}

// forgiven reports whether path is a canonical path in one of the spellings that are forgiven.
func forgiven(path, canonical string) bool {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return false
	}
	plain = strings.TrimSuffix(strings.TrimSuffix(plain, "\n"), "/")
	tail := strings.TrimPrefix(canonical, "/v1")
	return plain == tail || plain == canonical || plain == "/v1"+canonical
}

func sameUnescaped(a, b string) bool {
	plainA, errA := url.PathUnescape(a)
	plainB, errB := url.PathUnescape(b)
	return errA == nil && errB == nil && plainA == plainB
}

// FuzzTarget sends request targets through the handler, byte for byte: whatever they are, it does not panic, refuses what
// it refuses before anything goes up, and takes off one prefix at most.
func FuzzTarget(f *testing.F) {
	seeds := targets()
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, row := range seeds {
		f.Add("POST", row.path)
		f.Add("GET", row.path)
	}
	for _, odd := range []string{"*", "http://a.test/ng-rollout/a/v1/messages", "evil.test:443", "/%", "/%zz/ng-rollout/a/v1/messages", "/ng-rollout/%/v1/messages",
		"/ng-rollout/a/ng-rollout/b/ng-rollout/c/v1/messages", "/a#b", "/?", "//", "//\"", "/ng-rollout/a/training-token-capture/ng-rollout/b/training-token-capture/v1/responses"} {
		f.Add("POST", odd)
	}
	r := startWith(f, "http://upstream.test", zap.NewNop(), nil, func(c *Config) { c.Capture = CaptureOff; c.AdminListen = "" })
	var got []string
	r.srv.handler.transport = tripper(func(q *http.Request) (*http.Response, error) {
		got = append(got, q.URL.RequestURI())
		if q.URL.Host != "upstream.test" || q.Host != "upstream.test" {
			got = append(got, "at "+q.URL.Host+" as "+q.Host)
		}
		return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
			ContentLength: 2, Body: io.NopCloser(strings.NewReader("{}")), Request: q}, nil
	})
	f.Fuzz(func(t *testing.T, method, target string) {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")))
		if err != nil || req.RequestURI != target || method == "CONNECT" {
			t.Skip() // net/http answers these itself, or reads something else
		}
		got = nil
		w := httptest.NewRecorder()
		r.srv.handler.ServeHTTP(w, req)
		if len(got) > 1 {
			t.Fatalf("the upstream got %q", got)
		}
		code := w.Header().Get("X-Rolltap-Error")
		if (len(got) == 0) != (code != "") {
			t.Fatalf("answered %d with code %q, and the upstream got %q", w.Code, code, got)
		}
		if code != "" || !strings.HasPrefix(target, "/") {
			return
		}
		path, query, asked := strings.Cut(target, "?")
		upPath, upQuery, upAsked := strings.Cut(got[0], "?")
		if query != upQuery || asked != upAsked {
			t.Errorf("the query %q became %q", query, upQuery)
		}
		candidates := mayBecome(path)
		if slices.Contains(candidates, upPath) {
			return
		}
		if slices.ContainsFunc(candidates, func(c string) bool { return strings.HasPrefix(c, "//") && sameUnescaped(c, upPath) }) {
			return // url has no way to say an odd byte behind a doubled slash; it is escaped
		}
		canonical := []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/messages/count_tokens", "/v1/models"}
		if !slices.Contains(canonical, upPath) || !slices.ContainsFunc(candidates, func(c string) bool { return forgiven(c, upPath) }) {
			t.Errorf("%q became %q, which is none of %q", path, upPath, candidates)
		}
	})
}
