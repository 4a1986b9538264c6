package rewrite_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest"
)

// dialects are all dialects as ones that translate.
func dialects(tb testing.TB) []dialecttest.Dialect {
	tb.Helper()
	var all []dialecttest.Dialect
	for _, d := range rewrite.Dialects() {
		t, ok := d.(dialecttest.Dialect)
		if !ok {
			tb.Fatalf("%s does not translate", d.Name())
		}
		all = append(all, t)
	}
	return all
}

func translator(tb testing.TB, name canon.Dialect) dialecttest.Dialect {
	tb.Helper()
	for _, d := range dialects(tb) {
		if d.Name() == name {
			return d
		}
	}
	tb.Fatalf("there is no dialect %s", name)
	return nil
}

// exchange is a recorded one.
type exchange struct {
	name     string
	dialect  canon.Dialect
	status   int
	request  []byte // nil: it was no JSON
	response []byte
	stream   bool
}

func exchanges(tb testing.TB) []exchange {
	tb.Helper()
	const dir = "testdata/vllm"
	index, err := os.ReadFile(filepath.Join(dir, "index.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []exchange
	for line := range strings.Lines(string(index)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			tb.Fatalf("index.txt: %q", line)
		}
		x := exchange{name: words[0], dialect: canon.Dialect(words[1])}
		if x.status, err = strconv.Atoi(words[2]); err != nil {
			tb.Fatal(err)
		}
		files, err := os.ReadDir(filepath.Join(dir, x.name))
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			body, err := os.ReadFile(filepath.Join(dir, x.name, f.Name()))
			if err != nil {
				tb.Fatal(err)
			}
			if f.Name() == "request.json" {
				x.request = body
			} else {
				x.response, x.stream = body, filepath.Ext(f.Name()) == ".sse"
			}
		}
		all = append(all, x)
	}
	if len(all) < 200 {
		tb.Fatalf("only %d exchanges were found", len(all))
	}
	return all
}

// streams are the recorded event streams that a translation can get: a request for several choices is refused for other dialects.
func streams(tb testing.TB) []exchange {
	tb.Helper()
	return slices.DeleteFunc(exchanges(tb), func(x exchange) bool { return !x.stream || strings.Contains(x.name, "-n2") })
}

// unsaid names what a client's dialect has no words for, in a stream.
func unsaid(client canon.Dialect) []string {
	switch client {
	case canon.Chat:
		return []string{"stop.sequence", "usage.cache_write"}
	case canon.Messages:
		return []string{"logprobs", "logprobs.textless", "usage.reasoning"}
	case canon.Responses:
		return []string{"stop.sequence", "logprobs.textless"}
	case canon.Gemini:
		return []string{"stop.sequence", "usage.cache_write", "logprobs", "logprobs.textless", "arguments"} // a call's are an object
	}
	return nil
}

// unsaidWhole is unsaid of one JSON body, besides.
func unsaidWhole(client canon.Dialect) []string {
	switch client {
	case canon.Chat:
		return append(unsaid(client), "order") // a message has one content and one list of calls
	case canon.Messages:
		return append(unsaid(client), "arguments") // input is an object
	}
	return unsaid(client)
}

func TestSplitInvariance(t *testing.T) {
	for _, x := range streams(t) {
		t.Run(x.name, func(t *testing.T) { dialecttest.SplitInvariance(t, translator(t, x.dialect), x.response) })
	}
}

func TestTruncation(t *testing.T) {
	for _, x := range streams(t) {
		t.Run(x.name, func(t *testing.T) { dialecttest.Truncation(t, translator(t, x.dialect), x.response) })
	}
}

func TestTotalErrors(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(string(d.Name()), func(t *testing.T) { dialecttest.TotalErrors(t, d) })
	}
	for _, x := range exchanges(t) {
		if x.status >= 400 {
			t.Run(x.name, func(t *testing.T) { dialecttest.CheckError(t, translator(t, x.dialect), x.status, x.response) })
		}
	}
}

func TestRequestRoundTrip(t *testing.T) {
	allowed := []string{
		"stream_options.continuous_usage_stats", // usage in every chunk: an upstream is asked for what translations need
		".Params[11]: \"0\", \"\"",              // top_logprobs 0 without logprobs
		"tools[0].description",                  // of a namespace, which is taken apart
	}
	for _, x := range exchanges(t) {
		if x.status == 200 && x.request != nil && x.name != "extra-responses-store-next" { // which needs a server that keeps state
			t.Run(x.name, func(t *testing.T) { dialecttest.RequestRoundTrip(t, translator(t, x.dialect), x.request, allowed...) })
		}
	}
}

// FuzzStream gives every pair of dialects whole and broken frames in any order.
func FuzzStream(f *testing.F) {
	all := dialects(f)
	var frames []string
	for _, x := range streams(f) {
		if len(x.response) < 12000 {
			f.Add(x.response, []byte(nil), uint16(100))
			frames = append(frames, strings.SplitAfter(string(x.response), "\n\n")...)
		}
	}
	f.Fuzz(func(t *testing.T, stream, picks []byte, cut uint16) {
		for ; len(picks) >= 2; picks = picks[2:] {
			stream = append(stream, frames[(int(picks[0])<<8|int(picks[1]))%len(frames)]...)
		}
		for _, up := range all {
			for _, client := range all {
				dialecttest.CheckStream(t, up, client, stream, int(cut))
			}
		}
	})
}

// FuzzCall gives every pair of dialects any JSON object as a request, and as a failure.
func FuzzCall(f *testing.F) {
	all := dialects(f)
	for _, x := range exchanges(f) {
		if x.request != nil && len(x.request) < 4000 {
			f.Add(x.request)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range all {
			dialecttest.CheckError(t, d, 502, body)
		}
		if !callable(body) {
			return
		}
		for _, from := range all {
			for _, to := range all {
				dialecttest.CheckCall(t, from, to, body)
			}
		}
	})
}

// callable reports whether a body is one that dialects are given as a request: a JSON object whose members have different names.
func callable(body []byte) bool {
	names := map[string]bool{}
	if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
		return false
	}
	for it := jsonx.Object(body); it.Next(); {
		name := string(jsonx.AppendUnquoted(nil, it.Key()))
		if names[name] {
			return false
		}
		names[name] = true
	}
	return true
}
