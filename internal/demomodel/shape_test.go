package demomodel

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shape spells the skeleton of a JSON value: members in their order, scalars by
// their type, arrays as the distinct shapes of their elements.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	s, err := readShape(d)
	if err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return s
}

func readShape(d *json.Decoder) (string, error) {
	tok, err := d.Token()
	if err != nil {
		return "", err
	}
	switch tok {
	case json.Delim('{'):
		var members []string
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return "", err
			}
			v, err := readShape(d)
			if err != nil {
				return "", err
			}
			members = append(members, key.(string)+":"+v)
		}
		_, err := d.Token()
		return "{" + strings.Join(members, ",") + "}", err
	case json.Delim('['):
		var elements []string
		for d.More() {
			v, err := readShape(d)
			if err != nil {
				return "", err
			}
			if !slices.Contains(elements, v) {
				elements = append(elements, v)
			}
		}
		_, err := d.Token()
		return "[" + strings.Join(elements, "|") + "]", err
	}
	switch tok.(type) {
	case string:
		return "s", nil
	case json.Number:
		return "n", nil
	case bool:
		return "b", nil
	}
	return "null", nil
}

func shapes(t *testing.T, stream []byte) []string {
	t.Helper()
	datas, err := frames(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, data := range datas {
		if data == "[DONE]" {
			continue
		}
		if s := shape(t, []byte(data)); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

func recorded(t *testing.T, name string) (request, response []byte) {
	t.Helper()
	read := func(pattern string) []byte {
		files, _ := filepath.Glob(filepath.Join("testdata", name, pattern))
		if len(files) == 0 {
			return nil
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return read("request.*"), read("response.*")
}

// TestShapesAreVLLMs: the same request gets chunks and answers of exactly the
// recorded shapes, members in the same order.
func TestShapesAreVLLMs(t *testing.T) {
	s := server(t, Options{Model: "rolltap-test"})
	think := `"chat_template_kwargs":{"enable_thinking":true},`
	for _, c := range []struct{ name, path, more string }{
		{"chat-stream-capture", "/v1/chat/completions", ""},
		{"chat-stream-tool-auto", "/v1/chat/completions", think},
		{"chat-stream-tool-parallel", "/v1/chat/completions", think},
		{"chat-stream-usage-continuous", "/v1/chat/completions", ""},
		{"chat-stream-plain", "/v1/chat/completions", ""},
		{"chat-stream-n2", "/v1/chat/completions", ""},
		{"chat-stream-stop", "/v1/chat/completions", ""},
		{"chat-stream-effort-none", "/v1/chat/completions", ""},
		{"chat-unary-capture", "/v1/chat/completions", ""},
		{"chat-unary-tool-auto", "/v1/chat/completions", think},
		{"chat-unary-plain", "/v1/chat/completions", ""},
		{"chat-unary-n2", "/v1/chat/completions", ""},
		{"chat-unary-logprobs", "/v1/chat/completions", ""},
		{"tokenize-prompt", "/tokenize", ""},
		{"tokenize-chat", "/tokenize", ""},
		{"detokenize", "/detokenize", ""},
	} {
		request, want := recorded(t, c.name)
		// Two choices of 24 tokens are cut here: this tokenizer makes more of them.
		body := strings.Replace(string(request), `"max_completion_tokens": 24`, `"max_completion_tokens": 96`, 1)
		w := post(t, s.URL+c.path, strings.Replace(body, "{", "{"+c.more, 1))
		got, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.name, "stream") {
			if g, w := shapes(t, got), shapes(t, want); !slices.Equal(g, w) {
				t.Errorf("%s:\ngot\n  %s\nwant\n  %s", c.name, strings.Join(g, "\n  "), strings.Join(w, "\n  "))
			}
		} else if g, w := shape(t, got), shape(t, want); g != w {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, g, w)
		}
	}
	_, want := recorded(t, "models")
	w, err := http.Get(s.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	got, _ := io.ReadAll(w.Body)
	if g, w := shape(t, got), shape(t, want); g != w {
		t.Errorf("models:\ngot  %s\nwant %s", g, w)
	}
}

// TestStopIsCutAsRecorded: the words of this answer are vLLM's, and so must be
// where the text is held back and cut.
func TestStopIsCutAsRecorded(t *testing.T) {
	s := server(t, Options{Model: "rolltap-test"})
	request, want := recorded(t, "chat-stream-stop")
	w := post(t, s.URL+"/v1/chat/completions", string(request))
	got, _ := io.ReadAll(w.Body)
	texts := func(stream []byte) (out []string) {
		datas, _ := frames(bytes.NewReader(stream))
		for _, data := range datas {
			if data != "[DONE]" {
				out = append(out, text(at(parse(t, []byte(data)), "choices", 0, "delta", "content")))
			}
		}
		return out
	}
	if g, w := texts(got), texts(want); !slices.Equal(g, w) {
		t.Errorf("got %q, want %q", g, w)
	}
}

// TestErrorsAreVLLMs: status and body to the byte.
func TestErrorsAreVLLMs(t *testing.T) {
	s := server(t, Options{Model: "rolltap-test"})
	for _, c := range []struct {
		name, path, kind string
		status           int
	}{
		{"error-json-chat", "/v1/chat/completions", "application/json", 400},
		{"error-missing-chat", "/v1/chat/completions", "application/json", 400},
		{"error-content-type", "/v1/chat/completions", "text/plain", 400},
		{"error-model-chat", "/v1/chat/completions", "application/json", 404},
		{"error-path", "/v1/nothing-here", "application/json", 404},
		{"error-method", "/v1/models", "application/json", 405},
		{"chat-error-n-zero", "/v1/chat/completions", "application/json", 400},
		{"chat-error-temperature", "/v1/chat/completions", "application/json", 400},
		{"chat-error-stream-options", "/v1/chat/completions", "application/json", 400},
		{"chat-error-tool-choice-alone", "/v1/chat/completions", "application/json", 400},
		{"chat-error-tool-choice-unknown", "/v1/chat/completions", "application/json", 400},
		{"chat-error-tools-empty", "/v1/chat/completions", "application/json", 400},
		{"chat-error-tool-shape", "/v1/chat/completions", "application/json", 400},
		{"chat-error-top-logprobs", "/v1/chat/completions", "application/json", 400},
		{"chat-error-top-logprobs-many", "/v1/chat/completions", "application/json", 400},
		{"chat-error-image", "/v1/chat/completions", "application/json", 400},
	} {
		request, want := recorded(t, c.name)
		w := post(t, s.URL+c.path, string(request), "Content-Type", c.kind)
		got, _ := io.ReadAll(w.Body)
		if w.StatusCode != c.status || string(got) != string(want) {
			t.Errorf("%s:\ngot  %d %s\nwant %d %s", c.name, w.StatusCode, got, c.status, want)
		}
		if w.StatusCode == 405 && w.Header.Get("Allow") != "GET" {
			t.Errorf("allow: got %q, want GET", w.Header.Get("Allow"))
		}
	}
}
