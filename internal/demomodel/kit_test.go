package demomodel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is decoded JSON; numbers keep their spelling.
type object = map[string]any

func parse(t *testing.T, text []byte) object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v object
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

// at walks objects by name and arrays by number, nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

func ints(v any) (ids []int) {
	for _, e := range list(v) {
		ids = append(ids, number(e))
	}
	return ids
}

// server starts a model on a real socket.
func server(t testing.TB, o Options) *httptest.Server {
	s := httptest.NewServer(New(o))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

func post(t testing.TB, url string, body any, header ...string) *http.Response {
	t.Helper()
	var b []byte
	switch body := body.(type) {
	case string:
		b = []byte(body)
	default:
		b, _ = json.Marshal(body)
	}
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Body.Close() })
	return w
}

// unary posts a request and returns the whole answer.
func unary(t testing.TB, s *httptest.Server, q object) object {
	t.Helper()
	w := post(t, s.URL+"/v1/chat/completions", q)
	b, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", w.StatusCode, err, b)
	}
	tt, ok := t.(*testing.T)
	if !ok {
		return nil
	}
	return parse(tt, b)
}

// stream posts the request as a stream and returns its chunks. It insists on the
// framing and on [DONE].
func stream(t *testing.T, s *httptest.Server, q object) []object {
	t.Helper()
	q = with(q, object{"stream": true})
	if q["stream_options"] == nil {
		q["stream_options"] = object{"include_usage": true}
	}
	w := post(t, s.URL+"/v1/chat/completions", q)
	if got := w.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Fatalf("content type: got %q", got)
	}
	datas, err := frames(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(datas) == 0 || datas[len(datas)-1] != "[DONE]" {
		t.Fatal("the stream does not end with [DONE]")
	}
	var chunks []object
	for _, d := range datas[:len(datas)-1] {
		chunks = append(chunks, parse(t, []byte(d)))
	}
	return chunks
}

// frames splits a stream of exactly "data: ...\n\n" frames.
func frames(r io.Reader) (datas []string, err error) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			return datas, nil
		}
		if err != nil {
			return datas, err
		}
		blank, err := in.ReadString('\n')
		if err != nil {
			return datas, err
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || blank != "\n" {
			return datas, io.ErrNoProgress
		}
		datas = append(datas, strings.TrimSuffix(data, "\n"))
	}
}

func with(q object, more ...object) object {
	out := object{}
	for _, m := range append([]object{q}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func ask(text string, more ...object) object {
	return with(object{"messages": []any{object{"role": "user", "content": text}}}, more...)
}

var weatherTools = []any{
	object{"type": "function", "function": object{"name": "get_weather", "description": "Current weather.", "parameters": object{
		"type": "object", "properties": object{"city": object{"type": "string"}, "days": object{"type": "integer"}}, "required": []any{"city"}}}},
	object{"type": "function", "function": object{"name": "read_file", "parameters": object{
		"type": "object", "properties": object{"path": object{"type": "string"}}, "required": []any{"path"}}}},
}

var (
	tools   = object{"tools": weatherTools}
	capture = object{"return_token_ids": true, "logprobs": true}
)
