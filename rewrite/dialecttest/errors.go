package dialecttest

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// errorBodies are bodies of failures as servers and what stands in front of them send them.
func errorBodies() []string {
	return []string{
		"", " ", "null", "true", "0", `""`, `"text"`, "[]", "{}", "[[[[", "{", `{"error":`, "\xff\xfe", "\x00",
		`{"error":null}`, `{"error":true}`, `{"error":""}`, `{"error":"text"}`, `{"error":[]}`, `{"error":{}}`,
		`{"error":{"message":null}}`, `{"error":{"message":""}}`, `{"error":{"message":5,"type":[],"param":{},"code":{}}}`,
		`{"error":{"message":"m","type":"BadRequestError","param":null,"code":400}}`,
		`{"error":{"message":"m","type":"invalid_request_error","param":"tools[0]","code":"invalid_request"}}`,
		`{"error":{"message":"m","code":"529"}}`, `{"error":{"message":"m","code":200}}`, `{"error":{"message":"\ud800","code":1e9}}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, `{"type":"error"}`,
		`{"type":"error","error":{"type":"internal_error","message":""}}`,
		`{"object":"error","message":"m","type":"NotFoundError","param":null,"code":404}`,
		`{"detail":"Not Found"}`, `{"detail":[{"loc":["body","messages"],"msg":"Field required","type":"missing"}]}`, `{"detail":{}}`,
		`{"message":"m"}`, `{"status":"failed","error":{"code":"server_error","message":"m"}}`,
		"<html>\r\n<head><title>502 Bad Gateway</title></head></html>", "upstream connect error", "Internal Server Error\n",
		strings.Repeat("a", 1<<20), `{"error":{"message":"` + strings.Repeat("b", 1<<20) + `"}}`, strings.Repeat("[", 20000),
	}
}

// TotalErrors checks that every failure can be told: any status with any bytes.
func TotalErrors(tb testing.TB, d Dialect) {
	tb.Helper()
	for _, body := range errorBodies() {
		statuses := []int{200, 502, -1, 0, 100, 204, 302, 400, 401, 403, 404, 413, 422, 429, 499, 500, 503, 504, 529, 599, 600, 99999}
		if len(body) > 10000 {
			statuses = statuses[:2]
		}
		for _, status := range statuses {
			CheckError(tb, d, status, []byte(body))
		}
	}
}

// CheckError checks what holds for any failure.
func CheckError(tb testing.TB, d Dialect, status int, body []byte) {
	tb.Helper()
	shown := body[:min(len(body), 200)]
	p := d.ReadError(status, body)
	if p == nil || p.Message == "" {
		tb.Errorf("%s: a failure says something: %d %q gives %+v", d.Name(), status, shown, p)
		return
	}
	if !utf8.ValidString(p.Message) {
		tb.Errorf("%s: a message is text: %d %q", d.Name(), status, shown)
	}
	if p.Status < 400 || p.Status > 599 {
		tb.Errorf("%s: a failure has the status of one: %d %q gives %d", d.Name(), status, shown, p.Status)
	}
	if 400 <= status && status <= 599 && p.Status != status {
		tb.Errorf("%s: the status that was sent is kept: %d %q gives %d", d.Name(), status, shown, p.Status)
	}
	if jsonx.Valid(body) && bytes.HasPrefix(body, []byte("{")) {
		d.IsError(body)
	}
	said := d.AppendError(nil, *p)
	if !jsonx.Valid(said) || !d.IsError(said) {
		tb.Errorf("%s: what is said of a failure is JSON and a failure: %s", d.Name(), said[:min(len(said), 200)])
		return
	}
	// What clients look for when a context is full is said in words that they know.
	if again := d.ReadError(p.Status, said); again.Status != p.Status || again.Message != p.Message && p.Code != canon.CodeOverflow {
		tb.Errorf("%s: who says a failure again says the same: %+v, %+v", d.Name(), *p, *again)
	}
}

// Refusal is the square of a failure with a status of its own: what the client reads is what the upstream said.
func Refusal(tb testing.TB, up, client Dialect, status int, body []byte) {
	tb.Helper()
	said := up.ReadError(status, body)
	written := client.AppendError(nil, *said)
	if !jsonx.Valid(written) || !client.IsError(written) {
		tb.Errorf("%s to %s: what is said of a failure is JSON and a failure: %s", up.Name(), client.Name(), written)
		return
	}
	heard := client.ReadError(said.Status, written)
	switch {
	case heard.Status != said.Status, heard.Message != said.Message && said.Code != canon.CodeOverflow:
		tb.Errorf("%s to %s: the client reads why it failed: said %+v, heard %+v", up.Name(), client.Name(), *said, *heard)
	case (heard.Code == canon.CodeOverflow) != (said.Code == canon.CodeOverflow):
		tb.Errorf("%s to %s: a full context is one for every client: said %+v, heard %+v", up.Name(), client.Name(), *said, *heard)
	}
}
