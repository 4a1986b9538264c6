package rewrite

import (
	"net/http"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

var longID = strings.Repeat("a", 250)

var routes = []struct {
	name, path string
	want       Route
}{
	{"no prefix", "/v1/responses", Route{Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"a rollout", "/ng-rollout/abc/v1/responses",
		Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"a rollout with token capture", "/ng-rollout/abc/training-token-capture/v1/messages",
		Route{Prefixed: true, Rollout: "abc", Training: true, Prefix: "/ng-rollout/abc/training-token-capture", Path: "/v1/messages", Endpoint: Model, Dialect: canon.Messages}},
	{"models under a rollout", "/ng-rollout/abc/v1/models", Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "/v1/models", Endpoint: Models}},
	{"an id without more is no prefix", "/ng-rollout/abc", Route{Path: "/ng-rollout/abc"}},
	{"an id and a slash", "/ng-rollout/abc/", Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "/"}},
	{"an empty id is no prefix", "/ng-rollout//v1/responses", Route{Path: "/ng-rollout//v1/responses"}},
	{"nothing behind the prefix", "/ng-rollout", Route{Path: "/ng-rollout"}},
	{"a slash behind the prefix", "/ng-rollout/", Route{Path: "/ng-rollout/"}},
	{"token capture without a slash is path", "/ng-rollout/abc/training-token-capture",
		Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "/training-token-capture"}},
	{"token capture with a slash and nothing more", "/ng-rollout/abc/training-token-capture/",
		Route{Prefixed: true, Rollout: "abc", Training: true, Prefix: "/ng-rollout/abc/training-token-capture", Path: "/"}},
	{"token capture as the beginning of a segment is path", "/ng-rollout/abc/training-token-captureX/v1/messages",
		Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "/training-token-captureX/v1/messages"}},
	{"token capture twice counts once", "/ng-rollout/abc/training-token-capture/training-token-capture/v1/messages",
		Route{Prefixed: true, Rollout: "abc", Training: true, Prefix: "/ng-rollout/abc/training-token-capture", Path: "/training-token-capture/v1/messages"}},
	{"token capture with escapes", "/ng-rollout/abc/training%2Dtoken-capture/v1/messages",
		Route{Prefixed: true, Rollout: "abc", Training: true, Prefix: "/ng-rollout/abc/training%2Dtoken-capture", Path: "/v1/messages", Endpoint: Model, Dialect: canon.Messages}},
	{"token capture as an id", "/ng-rollout/training-token-capture/v1/responses", Route{Prefixed: true, Rollout: "training-token-capture",
		Prefix: "/ng-rollout/training-token-capture", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"token capture without a rollout is path", "/training-token-capture/v1/messages", Route{Path: "/training-token-capture/v1/messages"}},
	{"a doubled slash is another path", "/ng-rollout/abc//v1/responses", Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/abc", Path: "//v1/responses"}},
	{"a doubled slash in front is no prefix", "//ng-rollout/abc/v1/responses", Route{Path: "//ng-rollout/abc/v1/responses"}},
	{"a second prefix is path", "/ng-rollout/a/ng-rollout/b/v1/responses",
		Route{Prefixed: true, Rollout: "a", Prefix: "/ng-rollout/a", Path: "/ng-rollout/b/v1/responses"}},
	{"upper case is no prefix", "/NG-rollout/a/v1/responses", Route{Path: "/NG-rollout/a/v1/responses"}},
	{"a prefix further in is none", "/x/ng-rollout/a/v1/responses", Route{Path: "/x/ng-rollout/a/v1/responses"}},
	{"escapes in the id", "/ng-rollout/%61bc/v1/responses",
		Route{Prefixed: true, Rollout: "abc", Prefix: "/ng-rollout/%61bc", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"escapes in the prefix", "/ng%2Drollout/pct/v1/responses",
		Route{Prefixed: true, Rollout: "pct", Prefix: "/ng%2Drollout/pct", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"an encoded slash in a model path is a slash", "/ng-rollout/x/v1%2Fresponses",
		Route{Prefixed: true, Rollout: "x", Prefix: "/ng-rollout/x", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"an encoded slash in the id makes it an id that is refused", "/ng-rollout/a%2Fb/v1/responses",
		Route{Prefixed: true, Rollout: "a/b", Prefix: "/ng-rollout/a%2Fb", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"an encoded slash behind the prefix word is no prefix", "/ng-rollout%2Fa/v1/responses", Route{Path: "/ng-rollout%2Fa/v1/responses"}},
	{"dots as an id", "/ng-rollout/../v1/responses",
		Route{Prefixed: true, Rollout: "..", Prefix: "/ng-rollout/..", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"a space in the id", "/ng-rollout/a%20b/v1/responses",
		Route{Prefixed: true, Rollout: "a b", Prefix: "/ng-rollout/a%20b", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"an id that is too long", "/ng-rollout/" + longID + "/v1/responses",
		Route{Prefixed: true, Rollout: longID, Prefix: "/ng-rollout/" + longID, Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"an id with a broken escape stays as it is", "/ng-rollout/%zz/v1/responses",
		Route{Prefixed: true, Rollout: "%zz", Prefix: "/ng-rollout/%zz", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"a newline behind a model path", "/ng-rollout/nl/v1/responses%0A",
		Route{Prefixed: true, Rollout: "nl", Prefix: "/ng-rollout/nl", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"one slash behind a model path", "/ng-rollout/x/v1/responses/",
		Route{Prefixed: true, Rollout: "x", Prefix: "/ng-rollout/x", Path: "/v1/responses", Endpoint: Model, Dialect: canon.Responses}},
	{"two slashes behind a model path", "/v1/responses//", Route{Path: "/v1/responses//"}},
	{"a doubled v1", "/v1/v1/chat/completions", Route{Path: "/v1/chat/completions", Endpoint: Model, Dialect: canon.Chat}},
	{"a doubled v1 and a slash", "/v1/v1/messages/", Route{Path: "/v1/messages", Endpoint: Model, Dialect: canon.Messages}},
	{"a tripled v1 is another path", "/v1/v1/v1/messages", Route{Path: "/v1/v1/v1/messages"}},
	{"no v1", "/chat/completions", Route{Path: "/v1/chat/completions", Endpoint: Model, Dialect: canon.Chat}},
	{"no v1 under a rollout", "/ng-rollout/a/messages", Route{Prefixed: true, Rollout: "a", Prefix: "/ng-rollout/a", Path: "/v1/messages", Endpoint: Model, Dialect: canon.Messages}},
	{"count_tokens", "/v1/messages/count_tokens", Route{Path: "/v1/messages/count_tokens", Endpoint: CountTokens, Dialect: canon.Messages}},
	{"count_tokens, forgiven", "/messages/count_tokens/", Route{Path: "/v1/messages/count_tokens", Endpoint: CountTokens, Dialect: canon.Messages}},
	{"models", "/v1/models", Route{Path: "/v1/models", Endpoint: Models}},
	{"models, forgiven", "/v1/v1/models/", Route{Path: "/v1/models", Endpoint: Models}},
	{"one model is another path", "/v1/models/m", Route{Path: "/v1/models/m"}},
	{"a response by id is another path", "/v1/responses/resp_1", Route{Path: "/v1/responses/resp_1"}},
	{"a Gemini model", "/v1beta/models/g-1.5:generateContent", Route{Path: "/v1beta/models/g-1.5:generateContent", Endpoint: Model, Dialect: canon.Gemini, Target: dialect.Target{Model: "g-1.5"}}},
	{"a Gemini stream under a rollout with token capture", "/ng-rollout/a/training-token-capture/v1beta/models/m:streamGenerateContent", Route{Prefixed: true, Rollout: "a", Training: true,
		Prefix: "/ng-rollout/a/training-token-capture", Path: "/v1beta/models/m:streamGenerateContent", Endpoint: Model, Dialect: canon.Gemini, Target: dialect.Target{Model: "m", Stream: true}}},
	{"a Gemini model of the older version", "/v1/models/m:generateContent", Route{Path: "/v1beta/models/m:generateContent", Endpoint: Model, Dialect: canon.Gemini, Target: dialect.Target{Model: "m"}}},
	{"a Gemini model, a doubled version and a slash", "/v1beta/v1beta/models/m:generateContent/", Route{Path: "/v1beta/models/m:generateContent", Endpoint: Model, Dialect: canon.Gemini, Target: dialect.Target{Model: "m"}}},
	{"a Gemini model, no version", "/models/m:generateContent", Route{Path: "/v1beta/models/m:generateContent", Endpoint: Model, Dialect: canon.Gemini, Target: dialect.Target{Model: "m"}}},
	{"a Gemini model with slashes, colons and escapes", "/v1beta/models/org/m%20x:8b%3AgenerateContent", Route{Path: "/v1beta/models/org/m%20x:8b:generateContent", Endpoint: Model, Dialect: canon.Gemini,
		Target: dialect.Target{Model: "org/m x:8b"}}},
	{"a Gemini count", "/v1beta/models/m:countTokens", Route{Path: "/v1beta/models/m:countTokens", Endpoint: CountTokens, Dialect: canon.Gemini, Target: dialect.Target{Model: "m"}}},
	{"a Gemini path without a model", "/v1beta/models/:generateContent", Route{Path: "/v1beta/models/:generateContent"}},
	{"a Gemini method that is no call", "/v1beta/models/m:embedContent", Route{Path: "/v1beta/models/m:embedContent"}},
	{"Gemini's models are another path", "/v1beta/models", Route{Path: "/v1beta/models"}},
	{"v1beta in front of another endpoint is another path", "/v1beta/messages", Route{Path: "/v1beta/messages"}},
	{"the old completions are another path", "/v1/completions", Route{Path: "/v1/completions"}},
	{"the path of another endpoint keeps its escapes", "/ng-rollout/a/v1/files/x%2Fy%20z", Route{Prefixed: true, Rollout: "a", Prefix: "/ng-rollout/a", Path: "/v1/files/x%2Fy%20z"}},
	{"a query is none of its business", "/v1/messages?beta=true", Route{Path: "/v1/messages?beta=true"}},
	{"the root", "/", Route{Path: "/"}},
	{"no path at all", "", Route{Path: "/"}},
	{"no path but a server", "*", Route{Path: "*"}},
}

func TestParseRoute(t *testing.T) {
	for _, c := range routes {
		t.Run(c.name, func(t *testing.T) {
			if got := ParseRoute(c.path); got != c.want {
				t.Errorf("%s\n got %+v\nwant %+v", c.path, got, c.want)
			}
		})
	}
}

func FuzzParseRoute(f *testing.F) {
	for _, c := range routes {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r := ParseRoute(path)
		if path == "" {
			path = "/"
		}
		canonical := r.Path
		switch r.Endpoint {
		case Model:
			d := DialectOf(r.Dialect)
			if d == nil || r.Dialect != canon.Gemini && r.Path != d.Path() {
				t.Fatalf("a model path is the path of its dialect: %+v", r)
			}
			if again := ParseRoute(r.Path); again.Path != r.Path || again.Target != r.Target || again.Dialect != r.Dialect {
				t.Errorf("a canonical path says the same: %+v, %+v", r, again)
			}
		case CountTokens, Models:
			if !strings.HasPrefix(r.Path, "/v1/m") && !strings.HasPrefix(r.Path, "/v1beta/m") {
				t.Errorf("a known endpoint has its canonical path: %+v", r)
			}
		default:
			canonical = ""
			if r.Prefix+r.Path != path || r.Dialect != "" {
				t.Errorf("prefix and path are the target, nothing else: %q %+v", path, r)
			}
		}
		if canonical != "" && !strings.HasPrefix(path, r.Prefix) {
			t.Errorf("the prefix is the target's beginning: %q %+v", path, r)
		}
		if r.Prefixed != (r.Prefix != "") || r.Prefixed != (r.Rollout != "") || r.Training && !r.Prefixed {
			t.Errorf("a prefix has an id: %+v", r)
		}
		if n := strings.Count(r.Prefix, "/"); r.Prefixed && n != 2 && !(r.Training && n == 3) {
			t.Errorf("one prefix is removed, not more: %+v", r)
		}
	})
}

func TestNewPlan(t *testing.T) {
	chat := Route{Endpoint: Model, Dialect: canon.Chat}
	messages := Route{Endpoint: Model, Dialect: canon.Messages}
	count := Route{Endpoint: CountTokens, Dialect: canon.Messages}
	onlyChat := []canon.Dialect{canon.Chat}
	both := []canon.Dialect{canon.Chat, canon.Messages}
	for _, c := range []struct {
		name     string
		method   string
		route    Route
		upstream []canon.Dialect
		want     Plan
	}{
		{"a dialect of the upstream passes", http.MethodPost, chat, onlyChat, PassThrough},
		{"so does one that is not its best", http.MethodPost, messages, both, PassThrough},
		{"any other is translated", http.MethodPost, messages, onlyChat, Translate},
		{"an upstream that speaks nothing is spoken to by nobody", http.MethodPost, chat, nil, Translate},
		{"GET is no model call", http.MethodGet, chat, onlyChat, Opaque},
		{"nor is GET in a dialect the upstream lacks", http.MethodGet, messages, onlyChat, Opaque},
		{"nor is HEAD", http.MethodHead, chat, onlyChat, Opaque},
		{"nor is OPTIONS", http.MethodOptions, chat, onlyChat, Opaque},
		{"methods are case-sensitive", "post", chat, onlyChat, Opaque},
		{"a count that the upstream answers leaves no record", http.MethodPost, count, both, Opaque},
		{"any other count needs us", http.MethodPost, count, onlyChat, Translate},
		{"GET of a count passes", http.MethodGet, count, onlyChat, Opaque},
		{"models pass", http.MethodGet, Route{Endpoint: Models}, onlyChat, Opaque},
		{"anything else passes", http.MethodPost, Route{}, onlyChat, Opaque},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewPlan(c.method, c.route, c.upstream); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEveryDialectIsFoundByItsNameAndPath(t *testing.T) {
	for _, d := range Dialects() {
		if got := DialectOf(d.Name()); got != d {
			t.Errorf("%s: got %v", d.Name(), got)
		}
		if r := ParseRoute(d.Path()); r.Endpoint != Model || r.Dialect != d.Name() {
			t.Errorf("%s: %s leads to %+v", d.Name(), d.Path(), r)
		}
	}
	if got := DialectOf("vertex"); got != nil {
		t.Errorf("a name of nothing: got %v", got)
	}
}
