package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// target is a request target and what has to become of it.
type target struct {
	name string
	path string // sent as it stands, behind a POST
	up   string // what the upstream gets; "" nothing
	id   string // rollout that gets a record
	bad  bool   // refused with invalid_rollout_id
	// shape is the dialect of a refusal; "" OpenAI's.
	shape string
}

// targets are the rows of capture.md 1.5 with what rolltap decides differently, and what proxies get wrong beside them.
func targets() []target {
	long := strings.Repeat("a", 200)
	return []target{
		{name: "a prefix comes off and the call is captured", path: "/ng-rollout/abc/v1/responses", up: "/v1/responses", id: "abc"},
		{name: "the training segment comes off, too", path: "/ng-rollout/abc/training-token-capture/v1/messages", up: "/v1/messages", id: "abc"},
		{name: "a prefix without more is no prefix", path: "/ng-rollout/abc", up: "/ng-rollout/abc"},
		{name: "a prefix in front of the root", path: "/ng-rollout/abc/", up: "/"},
		{name: "an empty id is no prefix", path: "/ng-rollout//v1/responses", up: "/ng-rollout//v1/responses"},
		{name: "the training segment at the end is path", path: "/ng-rollout/abc/training-token-capture", up: "/training-token-capture"},
		{name: "the training segment in front of the root", path: "/ng-rollout/abc/training-token-capture/", up: "/"},
		{name: "a longer word is no training segment", path: "/ng-rollout/abc/training-token-captureX/v1/messages", up: "/training-token-captureX/v1/messages"},
		{name: "the training segment may be an id", path: "/ng-rollout/training-token-capture/v1/responses", up: "/v1/responses", id: "training-token-capture"},
		{name: "a doubled slash behind the prefix is kept", path: "/ng-rollout/abc//v1/responses", up: "//v1/responses"},
		{name: "only one prefix comes off", path: "/ng-rollout/a/ng-rollout/b/v1/responses", up: "/ng-rollout/b/v1/responses"},
		{name: "the prefix has a case", path: "/NG-rollout/a/v1/responses", up: "/NG-rollout/a/v1/responses"},
		{name: "the prefix is at the front", path: "/x/ng-rollout/a/v1/responses", up: "/x/ng-rollout/a/v1/responses"},
		{name: "an escaped id is decoded", path: "/ng-rollout/%61bc/v1/responses", up: "/v1/responses", id: "abc"},
		{name: "an escaped prefix is a prefix", path: "/ng%2Drollout/pct/v1/responses", up: "/v1/responses", id: "pct"},
		{name: "an escaped slash in a model path is a slash", path: "/ng-rollout/x/v1%2Fresponses", up: "/v1/responses", id: "x"},
		{name: "an escaped slash in an id is refused", path: "/ng-rollout/a%2Fb/v1/responses", bad: true, shape: "responses"},
		{name: "dots are no id", path: "/ng-rollout/../v1/responses", bad: true, shape: "responses"},
		{name: "escaped dots are no id", path: "/ng-rollout/%2e%2e/v1/messages", bad: true, shape: "messages"},
		{name: "one dot is no id", path: "/ng-rollout/./v1/messages", bad: true, shape: "messages"},
		{name: "a leading dot is no id", path: "/ng-rollout/.a/v1/messages", bad: true, shape: "messages"},
		{name: "a leading dash is no id", path: "/ng-rollout/-a/v1/messages", bad: true, shape: "messages"},
		{name: "a blank in an id is refused", path: "/ng-rollout/a%20b/v1/responses", bad: true, shape: "responses"},
		{name: "a newline in an id is refused", path: "/ng-rollout/a%0A/v1/chat/completions", bad: true, shape: "chat"},
		{name: "a NUL in an id is refused", path: "/ng-rollout/a%00/v1/chat/completions", bad: true, shape: "chat"},
		{name: "letters beyond ASCII are refused", path: "/ng-rollout/u%C3%A9/v1/messages", bad: true, shape: "messages"},
		{name: "an id of 200 characters", path: "/ng-rollout/" + long + "/v1/responses", up: "/v1/responses", id: long},
		{name: "an id of 201 characters is refused", path: "/ng-rollout/" + long + "a/v1/responses", bad: true, shape: "responses"},
		{name: "an id of 250 characters is refused with the training segment, too", path: "/ng-rollout/" + strings.Repeat("a", 250) + "/training-token-capture/v1/messages", bad: true, shape: "messages"},
		{name: "an invalid id is refused for every path", path: "/ng-rollout/a%20b/metrics", bad: true},
		{name: "every character of an id", path: "/ng-rollout/0aZ._-9/v1/responses", up: "/v1/responses", id: "0aZ._-9"},
		{name: "a trailing newline of a model path is forgiven", path: "/ng-rollout/nl/v1/responses%0A", up: "/v1/responses", id: "nl"},
		{name: "a query is sent on", path: "/ng-rollout/q/v1/messages?beta=true", up: "/v1/messages?beta=true", id: "q"},
		{name: "a trailing slash of a model path is forgiven", path: "/ng-rollout/x/v1/responses/", up: "/v1/responses", id: "x"},
		{name: "two trailing slashes are not", path: "/ng-rollout/x/v1/responses//", up: "/v1/responses//"},
		{name: "a doubled version is forgiven", path: "/ng-rollout/x/v1/v1/chat/completions", up: "/v1/chat/completions", id: "x"},
		{name: "a missing version is forgiven", path: "/ng-rollout/x/chat/completions", up: "/v1/chat/completions", id: "x"},
		{name: "a missing version and a trailing slash", path: "/ng-rollout/x/messages/", up: "/v1/messages", id: "x"},
		{name: "forgiven without a prefix, too", path: "/v1/v1/responses/", up: "/v1/responses"},
		{name: "without a prefix a call is served", path: "/v1/chat/completions", up: "/v1/chat/completions"},
		{name: "the root", path: "/", up: "/"},
		{name: "below a model path", path: "/ng-rollout/x/v1/responses/resp_1/cancel", up: "/v1/responses/resp_1/cancel"},
		{name: "count_tokens is no model call", path: "/ng-rollout/x/v1/messages/count_tokens?beta=true", up: "/v1/messages/count_tokens?beta=true"},
		{name: "other endpoints pass", path: "/ng-rollout/x/v1/load_lora_adapter", up: "/v1/load_lora_adapter"},
		{name: "the proxy port has no metrics of its own", path: "/metrics", up: "/metrics"},
		{name: "escapes of an unknown path are kept", path: "/ng-rollout/x/files/a%2Fb%20c%3Fd", up: "/files/a%2Fb%20c%3Fd"},
		{name: "lower-case escapes are kept", path: "/files/a%2fb%c3%a9", up: "/files/a%2fb%c3%a9"},
		{name: "needless escapes are kept", path: "/%66iles/%7Ea", up: "/%66iles/%7Ea"},
		{name: "characters that url would escape are kept", path: "/a|b^c\"d", up: "/a|b^c\"d"},
		{name: "dots in an unknown path are kept", path: "/ng-rollout/x/a/../b/./c", up: "/a/../b/./c"},
		{name: "a doubled slash at the front is kept", path: "//evil.test/v1/responses", up: "//evil.test/v1/responses"},
		{name: "a colon in the first segment", path: "/ng-rollout/x/a:b", up: "/a:b"},
		{name: "semicolons in a query are kept", path: "/v1/responses?a=1;b=2&c;d", up: "/v1/responses?a=1;b=2&c;d"},
		{name: "broken escapes in a query are kept", path: "/v1/responses?a=%zz&b=%", up: "/v1/responses?a=%zz&b=%"},
		{name: "the spelling of a query is kept", path: "/ng-rollout/x/v1/chat/completions?b=+&a=%2f&&=&b", up: "/v1/chat/completions?b=+&a=%2f&&=&b", id: "x"},
		{name: "a query that is empty", path: "/v1/responses?", up: "/v1/responses?"},
		{name: "a question mark in a query", path: "/v1/responses?a=?b", up: "/v1/responses?a=?b"},
		{name: "an id in the query is none", path: "/v1/responses?p=/ng-rollout/a/", up: "/v1/responses?p=/ng-rollout/a/"},
	}
}

// answerAll answers every request with an empty JSON object.
func answerAll(c *call) { c.reply(200, "application/json", `{}`) }

func TestTargets(t *testing.T) {
	up := newUpstream(t, answerAll)
	for _, row := range targets() {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.ask("POST", row.path, `{"model":"m"}`)
			res, body, err := w.answer("POST")
			if err != nil {
				t.Fatal(err)
			}
			if row.bad {
				if res.StatusCode != 400 || res.Header.Get("X-Rolltap-Error") != "invalid_rollout_id" {
					t.Errorf("answered %s with code %q, want 400 and invalid_rollout_id", res.Status, res.Header.Get("X-Rolltap-Error"))
				}
				shape := chatSample()
				if row.shape != "" {
					shape = sampleOf(row.shape)
				}
				shape.checkError(t, body, "invalid_rollout_id")
				up.quiet()
				if got := r.metric(`rolltap_uncaptured_requests_total{reason="invalid_rollout_id"}`); got != 1 {
					t.Errorf("counted %v invalid ids, want 1", got)
				}
			} else {
				if res.StatusCode != 200 {
					t.Errorf("answered %s: %s", res.Status, body)
				}
				if c := up.next(); c.Target != row.up {
					t.Errorf("the upstream got %q, want %q", c.Target, row.up)
				}
			}
			var want []string
			if row.id != "" {
				want = []string{row.id + ".capture.jsonl"}
				rec := r.record(row.id)
				path, query, _ := strings.Cut(row.up, "?")
				rec.expect(t, "rolltap.path", path, "rolltap.query", query, "rolltap.rollout_id", row.id, "rolltap.outcome", "ok",
					"model_call_id", res.Header.Get("X-Rolltap-Call-Id"))
			} else if res.Header.Get("X-Rolltap-Call-Id") != "" {
				t.Error("an answer without a record carries a call id")
			}
			if diff := cmp.Diff(want, r.stored()); diff != "" {
				t.Errorf("the store (-want +got):\n%s", diff)
			}
		})
	}
}

// ReverseProxy takes apart and cleans a query with more parameters than it likes, or drops it.
func TestQuery_ofTwentyThousandParametersArrivesAsItWas(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	query := strings.Repeat("a=1&", 20_000) + "b=%2f"
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/many/v1/responses?"+query, `{}`)
	if res, _, err := w.answer("POST"); err != nil || res.StatusCode != 200 {
		t.Fatalf("answered %v, %v", res.Status, err)
	}
	if got := up.next().Target; got != "/v1/responses?"+query {
		t.Errorf("the upstream got a target of %d bytes, want %d", len(got), len("/v1/responses?"+query))
	}
	r.record("many").expect(t, "rolltap.query", query)
}

func TestOtherFormsOfTarget(t *testing.T) {
	up := newUpstream(t, answerAll)
	for _, row := range []struct{ name, method, target, up string }{
		{"an absolute target is routed by its path", "POST", "http://proxy.test/ng-rollout/abs/v1/responses?x=1", "/v1/responses?x=1"},
		{"an absolute target chooses no upstream", "GET", "http://evil.test/health", "/health"},
		{"asterisk is no path", "OPTIONS", "*", ""},
		{"CONNECT is no path", "CONNECT", "evil.test:443", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.ask(row.method, row.target, "")
			res, _, err := w.answer(row.method)
			if err != nil {
				t.Fatal(err)
			}
			if row.up == "" {
				up.quiet()
				if res.StatusCode == 200 && row.method == "CONNECT" || res.StatusCode >= 500 {
					t.Errorf("answered %s", res.Status)
				}
				return
			}
			if got := up.next(); got.Target != row.up || got.Header.Get("Host") != up.addr {
				t.Errorf("the upstream %q got %q, want %q", got.Header.Get("Host"), got.Target, row.up)
			}
		})
	}
}

func TestUpstreamRoot(t *testing.T) {
	up := newUpstream(t, answerAll)
	for _, row := range []struct{ name, root, path, up string }{
		{"a root without a path", "", "/ng-rollout/r/v1/messages", "/v1/messages"},
		{"a root with a slash", "/", "/ng-rollout/r/v1/messages", "/v1/messages"},
		{"a last /v1 is not doubled", "/v1", "/ng-rollout/r/v1/messages", "/v1/messages"},
		{"a last /v1 with a slash is not doubled", "/v1/", "/v1/models", "/v1/models"},
		{"a path is kept", "/base", "/ng-rollout/r/v1/messages", "/base/v1/messages"},
		{"a path in front of /v1 is kept", "/base/v1", "/ng-rollout/r/v1/messages?a=1", "/base/v1/messages?a=1"},
		{"a path takes the canonical one", "/base/v1", "/ng-rollout/r/messages/", "/base/v1/messages"},
		{"a path with escapes is kept", "/a%2Fb", "/x%2Fy", "/a%2Fb/x%2Fy"},
		{"other paths are below it, too", "/base/v1", "/health", "/base/health"},
		{"odd bytes are below it, too", "/base", "/%66oo|x", "/base/%66oo|x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, up.url()+row.root)
			w := dial(t, r.addr)
			w.ask("POST", row.path, `{}`)
			if _, _, err := w.answer("POST"); err != nil {
				t.Fatal(err)
			}
			if got := up.next().Target; got != row.up {
				t.Errorf("the upstream got %q, want %q", got, row.up)
			}
		})
	}
}

func TestLocation(t *testing.T) {
	for _, row := range []struct{ name, root, path, location, want string }{
		{"a path gets the prefix back", "", "/ng-rollout/r/docs", "/docs/", "/ng-rollout/r/docs/"},
		{"the prefix as it was sent", "", "/ng%2Drollout/%72/training-token-capture/docs", "/docs/?a=b#c", "/ng%2Drollout/%72/training-token-capture/docs/?a=b#c"},
		{"escapes are kept", "", "/ng-rollout/r/docs", "/a%2Fb", "/ng-rollout/r/a%2Fb"},
		{"the host that the client asked gets it back", "", "/ng-rollout/r/docs", "http://proxy.test/docs/", "http://proxy.test/ng-rollout/r/docs/"},
		{"the upstream's own host is the proxy", "", "/ng-rollout/r/docs", "http://UPSTREAM/docs/", "/ng-rollout/r/docs/"},
		{"the path of the root goes with the host", "/base", "/ng-rollout/r/docs", "http://UPSTREAM/base/docs/", "/ng-rollout/r/docs/"},
		{"another host does not", "", "/ng-rollout/r/docs", "http://other.test/docs/", "http://other.test/docs/"},
		{"one that has it does not", "", "/ng-rollout/r/docs", "/ng-rollout/r/docs/", "/ng-rollout/r/docs/"},
		{"a relative one does not need it", "", "/ng-rollout/r/docs", "docs/", "docs/"},
		{"nothing to put back without one", "", "/docs", "/docs/", "/docs/"},
		{"a model path, too", "", "/ng-rollout/r/v1/responses", "/v1/responses/", "/ng-rollout/r/v1/responses/"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var addr string
			up := newUpstream(t, func(c *call) {
				c.reply(307, "", "", "Location", strings.ReplaceAll(row.location, "UPSTREAM", addr))
			})
			addr = up.addr
			r := start(t, up.url()+row.root)
			w := dial(t, r.addr)
			w.ask("POST", row.path, `{}`)
			res, _, err := w.answer("POST")
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Location"); got != row.want {
				t.Errorf("Location %q, want %q", got, row.want)
			}
		})
	}
}

// Only a POST is a model call.
func TestOtherMethodsOnModelPaths(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	for _, s := range samples() {
		for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY"} {
			w := dial(t, r.addr)
			w.ask(method, "/ng-rollout/m"+s.path, "")
			res, body, err := w.answer(method)
			if err != nil || res.StatusCode != 200 || body != "{}" || res.Header.Get("X-Rolltap-Call-Id") != "" {
				t.Errorf("%s %s: %s %q %v", method, s.path, res.Status, body, err)
			}
			if c := up.next(); c.Line != method+" "+s.path+" HTTP/1.1" {
				t.Errorf("the upstream got %q", c.Line)
			}
		}
	}
	if got := r.stored(); len(got) != 0 {
		t.Errorf("the store holds %v", got)
	}
}
