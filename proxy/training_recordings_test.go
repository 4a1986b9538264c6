package proxy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recordedAnswer is an answer of vLLM, byte for byte, with the Chat request that it answers (see rewrite/tokens).
type recordedAnswer struct {
	name    string
	stream  bool
	body    string
	request string

	prompt, generated, logprobs []string // that are in it, read by encoding/json
	completion                  int      // that its usage counts; -1: it does not
	whole                       bool     // it is no error and has its end
	aborted                     bool     // that end is the engine's, which is a failure to a client of another dialect
}

func recordedAnswers(t testing.TB, change func(body string) string) []recordedAnswer {
	t.Helper()
	const dir = "../rewrite/tokens/testdata"
	index, err := os.ReadFile(filepath.Join(dir, "vllm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]struct {
		Request json.RawMessage
		Choices int
	}
	if err := json.Unmarshal(index, &known); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "vllm", "*"))
	if err != nil || len(files) < 90 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	var all []recordedAnswer
	for _, f := range files {
		ext := filepath.Ext(f)
		a := recordedAnswer{name: strings.TrimSuffix(filepath.Base(f), ext), stream: ext == ".sse", completion: -1}
		of, ok := known[a.name]
		if !ok {
			t.Fatalf("%s is not in the index", f)
		}
		if of.Choices > 1 {
			continue // such a request is refused
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		a.body, a.request = change(string(b)), string(of.Request)
		a.read(t)
		all = append(all, a)
	}
	return all
}

// read takes the numbers out of the answer.
func (a *recordedAnswer) read(t testing.TB) {
	t.Helper()
	objects := []string{a.body}
	if a.stream {
		objects = nil
		for line := range strings.Lines(a.body) {
			text, ok := strings.CutPrefix(line, "data: ")
			if text = strings.TrimSpace(text); text == "[DONE]" {
				a.whole = true
			} else if ok {
				objects = append(objects, text)
			}
		}
	}
	finished := false
	for _, text := range objects {
		var o struct {
			Error   any
			Prompt  []json.Number `json:"prompt_token_ids"`
			Choices []struct {
				IDs      []json.Number `json:"token_ids"`
				Finish   *string       `json:"finish_reason"`
				Logprobs struct {
					Content []struct{ Logprob json.Number }
				}
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		for _, n := range o.Prompt {
			a.prompt = append(a.prompt, n.String())
		}
		for _, c := range o.Choices {
			finished = finished || c.Finish != nil
			a.aborted = a.aborted || c.Finish != nil && *c.Finish == "abort"
			for _, n := range c.IDs {
				a.generated = append(a.generated, n.String())
			}
			for _, l := range c.Logprobs.Content {
				a.logprobs = append(a.logprobs, l.Logprob.String())
			}
		}
		if o.Usage != nil {
			a.completion = o.Usage.Completion
		}
		if o.Error != nil {
			finished = false
			break
		}
	}
	a.whole = finished && (a.whole || !a.stream)
}

// usable is whether the answer has all that a trainer needs.
func (a *recordedAnswer) usable() bool {
	return a.whole && len(a.prompt) > 0 && len(a.generated) > 0 && len(a.logprobs) == len(a.generated) &&
		(a.completion < 0 || a.completion == len(a.generated))
}

var someIDs = regexp.MustCompile(`"(?:prompt_)?token_ids":\s*\[[0-9, ]*\]`)

// permuted gives an answer ids that no tokenizer would give for its text.
func permuted(body string) string {
	return someIDs.ReplaceAllStringFunc(body, func(list string) string {
		name, ids, _ := strings.Cut(list, "[")
		return name + "[" + regexp.MustCompile(`\d+`).ReplaceAllStringFunc(ids, func(n string) string {
			i, err := strconv.Atoi(n)
			if err != nil {
				panic(err)
			}
			return strconv.Itoa((i*7919 + 13) % 151936)
		})
	})
}

// Every answer that was recorded of vLLM, replayed byte for byte to clients of each dialect: what is whole is stored as the engine gave it, also when its
// ids fit no text; what is not marks the rollout or leaves nothing behind, and nobody sees ids that he did not ask for.
func TestTokens_recordings(t *testing.T) {
	for name, change := range map[string]func(string) string{"as recorded": func(s string) string { return s }, "permuted": permuted} {
		all := recordedAnswers(t, change)
		if n := len(slices.DeleteFunc(slices.Clone(all), func(a recordedAnswer) bool { return !a.usable() })); n < 30 {
			t.Errorf("%s: only %d recordings have all that a trainer needs", name, n)
		}
		for _, k := range talkers() {
			t.Run(name+"/"+k.dialect, func(t *testing.T) {
				t.Parallel()
				var now recordedAnswer // set before each call, read while it runs
				up := newUpstream(t, func(c *call) {
					switch {
					case c.Target != "/v1/chat/completions":
						c.reply(404, "application/json", `{}`)
					case now.stream:
						c.open(200, "text/event-stream; charset=utf-8")
						c.chunk(now.body)
						c.end()
					default:
						c.reply(200, "application/json", now.body)
					}
				})
				r := start(t, up.url(), taughtBy)
				for _, now = range all {
					r.replay(t, k, now)
				}
			})
		}
	}
}

// replay is one call that is answered with a recording.
func (r *rig) replay(t *testing.T, k talker, a recordedAnswer) {
	t.Helper()
	ask := k.body(t, []any{k.user("hi")}, object{"stream": a.stream})
	if k.dialect == "chat" {
		ask = a.request
	}
	_, got, _ := r.do("POST", strings.Replace(trainingPrefix, "/r/", "/"+a.name+"/", 1)+k.path, ask) // an answer without its end is cut
	if k.dialect != "chat" && someIDs.MatchString(got) {
		t.Errorf("%s: the client sees ids: %.500s", a.name, got)
	}
	result, _ := r.record(a.name).at("rolltap.tokens.result").(string)
	if !a.usable() || k.dialect != "chat" && a.aborted {
		if result == "ok" {
			t.Errorf("%s: %d prompt ids, %d ids, %d log probabilities of %d tokens are called whole", a.name, len(a.prompt), len(a.generated), len(a.logprobs), a.completion)
		}
		if result != "failed" && !r.incomplete(a.name) {
			t.Errorf("%s: %s does not mask the rollout", a.name, result)
		}
		return
	}
	if result != "ok" {
		t.Errorf("%s: result %q of a whole answer", a.name, result)
		return
	}
	e := r.keptTokens(a.name)[0]
	if !slices.Equal(e.prompt, a.prompt) || !slices.Equal(e.generation, a.generated) {
		t.Errorf("%s: stored are other ids than the engine's", a.name)
	}
	same(t, a.name+": log probabilities", e.logprobs, a.logprobs)
}
