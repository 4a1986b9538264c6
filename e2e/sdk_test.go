package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"rolltap/rewrite/canon"
)

// sdk is a client's library, and what an application makes of it.
type sdk interface {
	dialect() canon.Dialect
	// body is the request that the SDK sends for a stream.
	body(tb testing.TB, a ask) []byte
	// fold reads a stream that was answered to it. The failure is nil unless the SDK tells one.
	fold(tb testing.TB, wire []byte) (said, *failure)
	// whole reads a JSON answer.
	whole(tb testing.TB, body []byte) said
	// stream and unary ask a server.
	stream(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure)
	unary(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure)
	// stopWord is how the dialect tells a stop.
	stopWord(reason canon.StopReason, called bool) string
}

func sdks() []sdk { return []sdk{chatSDK{}, messagesSDK{}, responsesSDK{}, geminiSDK{}} }

// server is one that an SDK talks to, and keeps what it answers.
type server struct {
	root string // http://host:port/prefix
	wire *bytes.Buffer
}

// keep is a middleware that keeps the body of an answer as the SDK reads it.
func (s server) keep(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err == nil && s.wire != nil {
		res.Body = kept{io.TeeReader(res.Body, s.wire), res.Body}
	}
	return res, err
}

type kept struct {
	io.Reader
	io.Closer
}

// answered is an HTTP answer whose body is a stream.
func answered(wire []byte) *http.Response {
	req, _ := http.NewRequest("POST", "http://sidecar.example/", nil)
	return &http.Response{
		StatusCode: 200, Request: req, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body: io.NopCloser(bytes.NewReader(wire)),
	}
}

// streamed is the JSON of params with "stream": true, which SDKs add as they send it.
func streamed(tb testing.TB, params any) []byte {
	tb.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		tb.Fatalf("the SDK cannot write its request: %v", err)
	}
	return append([]byte(`{"stream":true,`), body[1:]...)
}

// failureOf reads an error object, inside its envelope or bare.
func failureOf(tb testing.TB, status int, body string) *failure {
	tb.Helper()
	type object struct {
		Type, Param, Message string
		Code                 any // vLLM has the status there
	}
	var e struct {
		Error *object
		object
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		tb.Errorf("the SDK's error is no JSON: %v in %s", err, body)
	}
	o := &e.object
	if e.Error != nil {
		o = e.Error
	}
	f := failure{Status: status, Type: o.Type, Param: o.Param, Message: o.Message}
	f.Code, _ = o.Code.(string)
	return &f
}
