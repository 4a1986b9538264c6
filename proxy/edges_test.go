package proxy

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A client may present more than the one token that lets it in, in either header and more than once.
func TestTokens_neverReachTheUpstream(t *testing.T) {
	for name, header := range map[string][]string{
		"two valid ones":     {"Authorization", "Bearer one", "X-Api-Key", "two"},
		"the other way":      {"Authorization", "Bearer two", "X-Api-Key", "one"},
		"one behind another": {"Authorization", "Bearer one", "X-Api-Key", "theirs", "X-Api-Key", "two"},
		"two of one header":  {"Authorization", "Bearer one", "Authorization", "Bearer two"},
	} {
		t.Run(name, func(t *testing.T) {
			up := newUpstream(t, answerAll)
			r := start(t, up.url(), func(c *Config) { c.AuthTokenFile = tokenFileOf(t, "one\ntwo\n") })
			res, _ := r.post("/v1/chat/completions", "{}", header...)
			if res.StatusCode != 200 {
				t.Fatalf("answered %s", res.Status)
			}
			if head := up.next().Head; strings.Contains(head, "one\r\n") || strings.Contains(head, "two\r\n") {
				t.Errorf("the upstream got %q", head)
			} else if name == "one behind another" && !strings.Contains(head, "X-Api-Key: theirs\r\n") {
				t.Errorf("the upstream's own key is missing in %q", head)
			}
		})
	}
}

func TestUpstreamKey_inTheHeaderOfTheDialectThatIsSpoken(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/messages/count_tokens": "X-Api-Key: secret\r\n",
		"/v1/messages":              "X-Api-Key: secret\r\n",
		"/v1/chat/completions":      "Authorization: Bearer secret\r\n",
		"/tokenize":                 "Authorization: Bearer secret\r\n",
	} {
		up := newUpstream(t, answerAll)
		r := start(t, up.url(), func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "secret\n") })
		r.post(path, "{}", "Authorization", "Bearer mine", "X-Api-Key", "mine")
		if head := up.next().Head; !strings.Contains(head, want) || strings.Count(head, "secret") != 1 || strings.Contains(head, "mine") {
			t.Errorf("%s: the upstream got %q", path, head)
		}
	}
}

func TestLocation_upstreamWithAPath(t *testing.T) {
	for _, row := range []struct{ location, want string }{
		{"/base/v1/other", "/ng-rollout/r/v1/other"},
		{"http://UPSTREAM/base/v1/other", "/ng-rollout/r/v1/other"},
		{"/basement/x", "/ng-rollout/r/basement/x"},
		{"http://UPSTREAM/basement/x", "/ng-rollout/r/basement/x"},
		{"/elsewhere", "/ng-rollout/r/elsewhere"},
		{"/base", "/ng-rollout/r/"},
	} {
		up := newUpstream(t, nil)
		up.script = func(c *call) { c.reply(307, "", "", "Location", strings.ReplaceAll(row.location, "UPSTREAM", up.addr)) }
		r := start(t, up.url()+"/base")
		res, _, err := r.do("GET", "/ng-rollout/r/v1/thing", "")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Header.Get("Location"), strings.ReplaceAll(row.want, "UPSTREAM", up.addr); got != want {
			t.Errorf("%s became %q, want %q", row.location, got, want)
		}
	}
}

func TestLogLevel_tellsWhatSomebodyMayHaveToLookAfter(t *testing.T) {
	for want, endings := range map[zapcore.Level][]ending{
		zap.WarnLevel: {{outcomeAborted, "exception"}, {outcomeUpstreamCut, "connection"}, {outcomeUpstreamTimeout, "timeout"},
			{outcomeUpstreamError, "connection"}, {outcomeUpstreamError, "upstream_error"}, {outcomeUpstreamError, "auth"}},
		zap.InfoLevel: {{outcomeOK, ""}, {outcomeOK, "capture_parse_error"}, {outcomeClientGone, "cancelled"}, {outcomeRefused, "upstream_error"},
			{outcomeUpstreamError, "client_error"}, {outcomeUpstreamError, "rate_limit"}, {outcomeUpstreamError, "not_found"}},
	} {
		for _, e := range endings {
			if got := logLevel(e); got != want {
				t.Errorf("%v is logged as %s, want %s", e, got, want)
			}
		}
	}
}

func TestTarget_absoluteWithoutAPath(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.send("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n")
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Errorf("got %q", head)
	}
	if got := up.next().Target; got != "/" {
		t.Errorf("the upstream was asked for %q", got)
	}
}
