package rewrite

import (
	"net/url"
	"slices"
	"strings"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

const (
	prefixSegment   = "ng-rollout"
	trainingSegment = "training-token-capture"
)

// Endpoint is what a path asks for, whatever the method is.
type Endpoint uint8

const (
	Other       Endpoint = iota // passes as it is
	Model                       // one of the model endpoints: /v1/chat/completions, /v1/messages, /v1/responses, /v1beta/models/{model}:generateContent
	CountTokens                 // /v1/messages/count_tokens, /v1beta/models/{model}:countTokens
	Models                      // /v1/models
)

func (e Endpoint) String() string {
	switch e {
	case Other:
		return "other"
	case Model:
		return "model"
	case CountTokens:
		return "count_tokens"
	case Models:
		return "models"
	}
	return "invalid"
}

// Route is a request target taken apart.
type Route struct {
	Prefixed bool   // a rollout prefix was there and has been removed
	Rollout  string // the id, percent-decoded and not validated: whether it is one is the store's rule
	Training bool   // the prefix asked for token capture
	Prefix   string // the prefix as it was sent, escapes and all, to be put in front of a Location again
	// Path is the rest, with its escapes, or the canonical path where Endpoint is not Other. It begins with "/" whenever the target did.
	Path     string
	Endpoint Endpoint
	Dialect  canon.Dialect // of Model and CountTokens, else ""
	// Target is what the path says of the call, where the dialect says that there and not in the body.
	Target dialect.Target
}

// ParseRoute takes the escaped path of a request target apart. Segments are cut at literal slashes and compared decoded, so /ng%2Drollout is
// the prefix and an id with an encoded slash is one id, which no store accepts. At most one prefix is removed; a second is ordinary path. Paths of the
// dialects in without are Other.
func ParseRoute(escapedPath string, without ...canon.Dialect) Route {
	r := Route{Path: escapedPath}
	if r.Path == "" {
		r.Path = "/" // an absolute request target without a path
	}
	if id, rest, ok := cutPrefix(r.Path); ok {
		r.Prefixed, r.Rollout = true, id
		if segment, inner, more := cutSegment(rest); more && decoded(segment) == trainingSegment {
			r.Training, rest = true, inner
		}
		r.Prefix, r.Path = r.Path[:len(r.Path)-len(rest)], rest
	}
	if e := recognise(decoded(r.Path)); e.endpoint != Other && !slices.Contains(without, e.dialect) {
		r.Endpoint, r.Dialect, r.Path, r.Target = e.endpoint, e.dialect, e.path, e.target
	}
	return r
}

// cutPrefix finds /ng-rollout/<id> in front of a further slash; rest begins with that slash.
func cutPrefix(path string) (id, rest string, ok bool) {
	segment, rest, more := cutSegment(path)
	if !more || decoded(segment) != prefixSegment {
		return "", "", false
	}
	segment, rest, more = cutSegment(rest)
	if !more || segment == "" {
		return "", "", false
	}
	return decoded(segment), rest, true
}

// cutSegment splits "/segment/rest" into segment and "/rest"; more is false when no slash follows the segment.
func cutSegment(path string) (segment, rest string, more bool) {
	if !strings.HasPrefix(path, "/") {
		return "", "", false
	}
	end := strings.IndexByte(path[1:], '/')
	if end < 0 {
		return path[1:], "", false
	}
	return path[1 : 1+end], path[1+end:], true
}

// decoded leaves a text whose escapes are broken as it is; no word that is looked for has a percent sign.
func decoded(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

type endpoint struct {
	endpoint Endpoint
	dialect  canon.Dialect
	path     string
	target   dialect.Target
}

// recognise forgives what clients get wrong in base URLs: one trailing slash, a doubled /v1 or /v1beta, or none. It also forgives a trailing newline, as
// upstream routers do: left alone, the call would be answered and not captured.
func recognise(path string) endpoint {
	path = strings.TrimSuffix(path, "\n")
	path = strings.TrimSuffix(path, "/")
	for range 2 {
		if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
			path = "/" + rest
		} else if rest, ok := strings.CutPrefix(path, "/v1beta/"); ok && strings.Contains(rest, "models/") {
			path = "/" + rest
		}
	}
	switch path {
	case "/chat/completions":
		return endpoint{endpoint: Model, dialect: canon.Chat, path: "/v1/chat/completions"}
	case "/messages":
		return endpoint{endpoint: Model, dialect: canon.Messages, path: "/v1/messages"}
	case "/responses":
		return endpoint{endpoint: Model, dialect: canon.Responses, path: "/v1/responses"}
	case "/messages/count_tokens":
		return endpoint{endpoint: CountTokens, dialect: canon.Messages, path: "/v1/messages/count_tokens"}
	case "/models":
		return endpoint{endpoint: Models, path: "/v1/models"}
	}
	if rest, ok := strings.CutPrefix(path, "/models/"); ok {
		return modelMethod(rest)
	}
	return endpoint{}
}

// modelMethod recognises what Gemini's paths end in, {model}:{method}. A model's name may have slashes and colons in it.
func modelMethod(rest string) endpoint {
	colon := strings.LastIndexByte(rest, ':')
	if colon <= 0 {
		return endpoint{}
	}
	e := endpoint{endpoint: Model, dialect: canon.Gemini, target: dialect.Target{Model: rest[:colon]}}
	switch rest[colon:] {
	case ":generateContent":
	case ":streamGenerateContent":
		e.target.Stream = true
	case ":countTokens":
		e.endpoint = CountTokens
	default:
		return endpoint{}
	}
	e.path = (&url.URL{Path: "/v1beta/models/" + rest}).EscapedPath()
	return e
}

// Asked is the model that a call of this route asks for, and whether it asks for a stream; body is the call's, a valid JSON object.
func (r *Route) Asked(d dialect.Dialect, body []byte) (model string, stream bool) {
	if model, stream = d.ReadRequest(body); r.Target.Model != "" {
		return r.Target.Model, r.Target.Stream
	}
	return model, stream
}
