package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// exchange is a recorded one.
type exchange struct {
	name     string
	dialect  canon.Dialect
	status   int
	request  []byte
	response []byte
	kind     string // content type of the response
}

func (x *exchange) stream() bool { return x.kind == "text/event-stream" }

// choices tells that several answers were asked for at once, which only Chat can say.
func (x *exchange) choices() bool { return strings.Contains(x.name, "-n2") }

// exchanges are the recorded ones that keep says yes to.
func exchanges(tb testing.TB, keep func(*exchange) bool) []exchange {
	tb.Helper()
	const dir = "../rewrite/testdata/vllm"
	index, err := os.ReadFile(filepath.Join(dir, "index.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	kinds := map[string]string{".sse": "text/event-stream", ".json": "application/json", ".txt": "text/plain"}
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
			if name := f.Name(); name == "request.json" {
				x.request = body
			} else if strings.HasPrefix(name, "response.") {
				x.response, x.kind = body, kinds[filepath.Ext(name)]
			}
		}
		if keep(&x) {
			all = append(all, x)
		}
	}
	return all
}

// streams are the recorded event streams of one answer each. A test that finds hardly any of them would say nothing.
func streams(tb testing.TB) []exchange {
	tb.Helper()
	all := exchanges(tb, func(x *exchange) bool { return x.stream() && !x.choices() })
	if len(all) < 100 {
		tb.Fatalf("only %d streams", len(all))
	}
	return all
}

// wholes are the recorded JSON answers of one answer each.
func wholes(tb testing.TB) []exchange {
	tb.Helper()
	all := exchanges(tb, func(x *exchange) bool { return !x.stream() && x.status == 200 && !x.choices() })
	if len(all) < 40 {
		tb.Fatalf("only %d whole answers", len(all))
	}
	return all
}

func translator(tb testing.TB, name canon.Dialect) dialect.Dialect {
	tb.Helper()
	d := rewrite.DialectOf(name)
	if d == nil {
		tb.Fatalf("there is no dialect %s", name)
	}
	return d
}

// ask is what an application asks for, whatever SDK it uses.
type ask struct {
	model     string
	turns     []turn
	tools     []tool
	stop      []string
	maxTokens int64
}

// turn is a message of the conversation. One of the model may have reasoning and calls besides its text.
type turn struct {
	role      string // user, assistant, tool
	text      string
	reasoning string
	calls     []part
	callID    string // of a tool's result
}

type tool struct {
	name, description string
	parameters        map[string]any
}

// askOf is the request of a recorded exchange: of one of Chat the conversation, the tools and the stop sequences, of another the latter and a
// plain question. Its model is the exchange's name, by which a replaying server knows what to answer.
func askOf(tb testing.TB, x *exchange) ask {
	tb.Helper()
	a := ask{model: x.name, maxTokens: 96}
	var body struct {
		Messages []struct {
			Role, Reasoning string
			Content         any
			ToolCallID      string `json:"tool_call_id"`
			ToolCalls       []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        map[string]any
			}
		}
		Stop any
	}
	var sequences struct {
		Stop []string `json:"stop_sequences"`
	}
	var into any = &sequences
	if x.dialect == canon.Chat {
		into = &body
	}
	if x.request != nil {
		if err := json.Unmarshal(x.request, into); err != nil {
			tb.Fatalf("%s: %v", x.name, err)
		}
	}
	a.stop = sequences.Stop
	for _, m := range body.Messages {
		t := turn{role: m.Role, reasoning: m.Reasoning, callID: m.ToolCallID}
		t.text, _ = m.Content.(string)
		for _, c := range m.ToolCalls {
			t.calls = append(t.calls, part{Kind: "call", ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		a.turns = append(a.turns, t)
	}
	if len(a.turns) == 0 {
		a.turns = []turn{{role: "user", text: "Why is the sky blue?"}}
	}
	for _, t := range body.Tools {
		a.tools = append(a.tools, tool{t.Function.Name, t.Function.Description, t.Function.Parameters})
	}
	switch stop := body.Stop.(type) {
	case string:
		a.stop = []string{stop}
	case []any:
		for _, s := range stop {
			a.stop = append(a.stop, s.(string))
		}
	}
	return a
}
