package tokens

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/sse"
)

// recording is an answer of vLLM 0.32.0, of the Python front end or (rust-) of the Rust one, with the request that it answers and what was
// counted in it by other means.
type recording struct {
	name    string
	stream  bool
	body    []byte
	Request json.RawMessage
	// IDs, Logprobs and Prompt are the numbers of those in the answer, Choices that of choices.
	IDs, Logprobs, Prompt, Choices int
	Completion                     *int64
}

func recordings(t testing.TB) map[string]*recording {
	t.Helper()
	index, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*recording{}
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/vllm/*")
	if len(files) < 90 || len(files) != len(all) {
		t.Fatalf("%d recordings, %d in the index", len(files), len(all))
	}
	for _, f := range files {
		ext := filepath.Ext(f)
		name := strings.TrimSuffix(filepath.Base(f), ext)
		r := all[name]
		if r == nil {
			t.Fatalf("%s is not in the index", f)
		}
		if r.body, err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
		r.name, r.stream = name, ext == ".sse"
	}
	return all
}

func (r *recording) wish(t testing.TB) Wish {
	t.Helper()
	_, w, err := Ask(r.Request)
	if err != nil && r.Choices != 2 {
		t.Fatal(err)
	}
	return w
}

func (r *recording) collect(t testing.TB) Result {
	t.Helper()
	c := NewCollector(1<<20, r.wish(t))
	feed(c, r.stream, r.body)
	return c.Result()
}

func feed(c *Collector, stream bool, body []byte) {
	if !stream {
		c.Whole(body)
		return
	}
	var s sse.Splitter
	var ev sse.Event
	s.Push(body)
	for s.Next(&ev) {
		c.Event(ev.Data)
	}
}

// told is what an answer says, read in another way: by encoding/json, with the numbers as they are spelled.
type told struct{ prompt, generated, logprobs []string }

func (r *recording) told(t testing.TB) told {
	t.Helper()
	var all told
	for _, one := range r.objects(t) {
		var a struct {
			Prompt  []json.Number `json:"prompt_token_ids"`
			Choices []struct {
				IDs      []json.Number `json:"token_ids"`
				Logprobs struct {
					Content []struct{ Logprob json.Number }
				}
			}
		}
		if err := json.Unmarshal(one, &a); err != nil {
			t.Fatal(err)
		}
		if a.Prompt != nil {
			all.prompt = spellings(a.Prompt)
		}
		for _, c := range a.Choices {
			all.generated = append(all.generated, spellings(c.IDs)...)
			for _, e := range c.Logprobs.Content {
				all.logprobs = append(all.logprobs, string(e.Logprob))
			}
		}
	}
	return all
}

func (r *recording) objects(t testing.TB) [][]byte {
	t.Helper()
	if !r.stream {
		return [][]byte{r.body}
	}
	var all [][]byte
	for line := range bytes.Lines(r.body) {
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok && string(data) != "[DONE]" {
			all = append(all, data)
		}
	}
	return all
}

func spellings(numbers []json.Number) []string {
	var all []string
	for _, n := range numbers {
		all = append(all, string(n))
	}
	return all
}

func array(all []string) string { return "[" + strings.Join(all, ",") + "]" }

// reasonOf is what a recording has to come to: by what was asked and what happened, not by what was collected.
func (r *recording) reasonOf() Reason {
	var q struct {
		IDs       bool  `json:"return_token_ids"`
		Logprobs  bool  `json:"logprobs"`
		Named     bool  `json:"return_tokens_as_token_ids"`
		Reasoning *bool `json:"include_reasoning"`
		N         int
	}
	if err := json.Unmarshal(r.Request, &q); err != nil {
		panic(err)
	}
	switch {
	case strings.HasSuffix(r.name, "error-regex"), strings.HasSuffix(r.name, "engine-death"):
		return UpstreamError
	case q.N > 1:
		return SeveralChoices
	case strings.HasSuffix(r.name, "client-abort"):
		return Truncated
	case q.Reasoning != nil && !*q.Reasoning:
		return HiddenReasoning
	case q.Named && q.Logprobs:
		return ""
	case !q.IDs:
		return NoTokenIDs
	case !q.Logprobs:
		return NoLogprobs
	}
	return ""
}

// TestRecordings: of every recorded answer the numbers are collected as they are spelled, and the answer is whole or told not to be.
func TestRecordings(t *testing.T) {
	whole := 0
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			got := r.collect(t)
			if want := r.reasonOf(); got.Reason != want {
				t.Fatalf("reason %q, want %q", got.Reason, want)
			}
			if got.Reason == SeveralChoices {
				if got.Generated != nil || got.Logprobs != nil {
					t.Error("ids of several choices were put together")
				}
				return
			}
			compare(t, got, r)
			if got.Reason == "" {
				whole++
			}
		})
	}
	if whole < 60 {
		t.Errorf("only %d whole answers", whole)
	}
}

func compare(t *testing.T, got Result, r *recording) {
	t.Helper()
	want := r.told(t)
	if got.Source == Named {
		if got.GeneratedLen != r.Logprobs || got.LogprobsLen != r.Logprobs || got.Prompt != nil || !got.NeedsPrompt {
			t.Errorf("named ids: %+v", got)
		}
		return
	}
	if got.GeneratedLen != r.IDs || got.LogprobsLen != r.Logprobs || got.PromptLen != r.Prompt {
		t.Errorf("%d ids, %d logprobs, %d prompt ids; want %d, %d, %d",
			got.GeneratedLen, got.LogprobsLen, got.PromptLen, r.IDs, r.Logprobs, r.Prompt)
	}
	for _, x := range []struct {
		what string
		got  []byte
		want []string
	}{{"prompt", got.Prompt, want.prompt}, {"generated", got.Generated, want.generated}, {"logprobs", got.Logprobs, want.logprobs}} {
		if (x.got != nil || x.want != nil) && string(x.got) != array(x.want) {
			t.Errorf("%s: got %s, want %s", x.what, x.got, array(x.want))
		}
	}
	completion := canon.Unknown
	if r.Completion != nil {
		completion = *r.Completion
	}
	if got.Completion != completion {
		t.Errorf("completion %d, want %d", got.Completion, completion)
	}
	if got.PromptTokens != canon.Unknown && r.Prompt > 0 && got.PromptTokens != int64(r.Prompt) {
		t.Errorf("usage counts %d prompt tokens, there are %d ids", got.PromptTokens, r.Prompt)
	}
}

var idLists = regexp.MustCompile(`("(?:prompt_)?token_ids":\[)([0-9,]+)\]`)

// TestOtherIDs: ids that no tokenizer would give are collected as they are given.
func TestOtherIDs(t *testing.T) {
	for name, r := range recordings(t) {
		if r.IDs == 0 || r.Choices != 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			other := *r
			k := 0
			other.body = idLists.ReplaceAllFunc(r.body, func(m []byte) []byte {
				parts := idLists.FindSubmatch(m)
				out := bytes.Clone(parts[1])
				for i := range bytes.Split(parts[2], []byte(",")) {
					if i > 0 {
						out = append(out, ',')
					}
					k++
					out = strconv.AppendInt(out, int64(k*7919%100003), 10)
				}
				return append(out, ']')
			})
			if bytes.Equal(other.body, r.body) {
				t.Fatal("nothing was changed")
			}
			got := other.collect(t)
			if got.Reason != r.reasonOf() {
				t.Errorf("reason %q", got.Reason)
			}
			compare(t, got, &other)
		})
	}
}

// TestNames: what names an answer is taken as it is spelled.
func TestNames(t *testing.T) {
	got := recordings(t)["chat-stream-capture"].collect(t)
	if string(got.Model) != `"rolltap-test"` || !strings.HasPrefix(string(got.ResponseID), `"chatcmpl-`) || string(got.Finish) != `"stop"` {
		t.Errorf("%s %s %s", got.Model, got.ResponseID, got.Finish)
	}
}
