package rewrite

import (
	"net/url"
	"strings"

	"rolltap/rewrite/canon"
)

const (
	prefixSegment   = "ng-rollout"
	trainingSegment = "training-token-capture"
)

// Endpoint is what a path asks for, whatever the method is.
type Endpoint uint8

const (
	Other       Endpoint = iota // passes as it is
	Model                       // one of the model endpoints: /v1/chat/completions, /v1/messages, /v1/responses
	CountTokens                 // /v1/messages/count_tokens
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
}

// ParseRoute takes the escaped path of a request target apart. Segments are cut at literal slashes and compared decoded, so /ng%2Drollout is
// the prefix and an id with an encoded slash is one id, which no store accepts. At most one prefix is removed; a second is ordinary path.
func ParseRoute(escapedPath string) Route {
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
	if e := recognise(decoded(r.Path)); e.endpoint != Other {
		r.Endpoint, r.Dialect, r.Path = e.endpoint, e.dialect, e.path
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
}

// recognise forgives what clients get wrong in base URLs: one trailing slash, a doubled /v1 or none. It also forgives a trailing newline, as
// upstream routers do: left alone, the call would be answered and not captured.
func recognise(path string) endpoint {
	path = strings.TrimSuffix(path, "\n")
	path = strings.TrimSuffix(path, "/")
	for range 2 {
		if strings.HasPrefix(path, "/v1/") {
			path = path[len("/v1"):]
		}
	}
	switch path {
	case "/chat/completions":
		return endpoint{Model, canon.Chat, "/v1/chat/completions"}
	case "/messages":
		return endpoint{Model, canon.Messages, "/v1/messages"}
	case "/responses":
		return endpoint{Model, canon.Responses, "/v1/responses"}
	case "/messages/count_tokens":
		return endpoint{CountTokens, canon.Messages, "/v1/messages/count_tokens"}
	case "/models":
		return endpoint{Models, "", "/v1/models"}
	}
	return endpoint{}
}
