package rewrite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/sse"
)

// The cost of one frame of a stream from its bytes to the client's, with decoder and encoder made anew for each stream. The goals are 1 µs
// and 1 allocation an event. Compare with benchstat: go test -run - -bench Chat -count 10 ./rewrite >new; benchstat old new.

func BenchmarkChatToMessages(b *testing.B)  { benchmarkTranslate(b, canon.Messages) }
func BenchmarkChatToResponses(b *testing.B) { benchmarkTranslate(b, canon.Responses) }
func BenchmarkChatToChat(b *testing.B)      { benchmarkTranslate(b, canon.Chat) }

func benchmarkTranslate(b *testing.B, client canon.Dialect) {
	for _, c := range []struct {
		name, file string
		long       int // frames at least: deltas are repeated
	}{
		{"tools", "rust-chat-stream-tool-parallel", 0},      // reasoning and two calls
		{"logprobs", "chat-stream-tool-parallel", 0},        // the same with logprobs and token ids in every frame, which nobody asked for
		{"short", "rust-chat-stream-control-characters", 0}, // what a stream costs shows
		{"long", "chat-stream-reasoning", 500},
	} {
		b.Run(c.name, func(b *testing.B) {
			frames := recordedFrames(b, c.file, c.long)
			up, down := translator(b, canon.Chat), translator(b, client)
			asked := dialecttest.Asked(down)
			asked.Show.Logprobs = false
			var before, after runtime.MemStats
			b.ReportAllocs()
			runtime.ReadMemStats(&before)
			var t translation
			streams := 0
			for b.Loop() {
				streams++
				if err := t.run(up, down, asked, frames); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			n := float64(streams * len(frames))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/event")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/event")
		})
	}
}

// translation holds the buffers that streams share.
type translation struct {
	events, turn []canon.Event
	wire         []byte
}

func (t *translation) run(up, down dialecttest.Dialect, asked *canon.Request, frames []frame) error {
	policy := dialect.DefaultPolicy()
	o := dialect.Options{Policy: &policy, Losses: new(canon.Losses), ID: "0123456789abcdef0123", Created: 1700000000}
	decoder, encoder := up.NewDecoder(o), down.NewEncoder(asked, o)
	var seq canon.Sequencer
	var err error
	for _, f := range frames {
		if t.events, err = decoder.Frame(t.events[:0], f.name, f.data); err != nil {
			return err
		}
		turn := t.events
		if !encoder.Overlap() {
			t.turn = t.turn[:0]
			for i := range t.events {
				if t.turn, err = seq.Next(t.turn, &t.events[i]); err != nil {
					return err
				}
			}
			turn = t.turn
		}
		t.wire = t.wire[:0]
		for i := range turn {
			t.wire = encoder.Append(t.wire, &turn[i])
		}
	}
	return decoder.Finish()
}

type frame struct{ name, data []byte }

func recordedFrames(tb testing.TB, name string, long int) (frames []frame) {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/vllm", name, "response.sse"))
	if err != nil {
		tb.Fatal(err)
	}
	var split sse.Splitter
	var ev sse.Event
	for split.Push(raw); split.Next(&ev); {
		frames = append(frames, frame{append([]byte(nil), ev.Name...), append([]byte(nil), ev.Data...)})
	}
	if len(frames) < 20 {
		tb.Fatalf("%s has only %d frames", name, len(frames))
	}
	for deltas := slices.Clone(frames[2:14]); len(frames) < long; {
		frames = slices.Insert(frames, 14, deltas...)
	}
	return frames
}

// The cost of a request of 400 KiB, checked, read, prepared and written for a Chat upstream. The goal is 3 ms.
func BenchmarkTranslateRequest(b *testing.B) {
	upstream := translator(b, canon.Chat)
	policy := rewrite.DefaultPolicy()
	for _, client := range []canon.Dialect{canon.Messages, canon.Responses} {
		b.Run(string(client), func(b *testing.B) {
			body, from := agentRequest(b, client, 400<<10), translator(b, client)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				sent, err := rewrite.NewTranslation(from, upstream, &policy, rewrite.Call{ID: "x"}).Request(body)
				if err != nil || len(sent) < len(body)/2 {
					b.Fatal(len(sent), err)
				}
			}
		})
	}
}

// agentRequest is a recorded request of an agent, which goes on for as many turns as make about size bytes: reasoning, calls whose arguments
// are source code, and results with much more of it.
func agentRequest(tb testing.TB, client canon.Dialect, size int) []byte {
	tb.Helper()
	file, member, turn := "claude-code-4", "messages", `,{"role":"assistant","content":[{"type":"thinking","thinking":"The file is read first.","signature":%[2]s},`+
		`{"type":"text","text":"Now the change."},{"type":"tool_use","id":"call_%[1]d","name":"Edit","input":%[3]s}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%[1]d","content":%[5]s}]}`
	if client == canon.Responses {
		file, member, turn = "codex-1", "input", `,{"type":"reasoning","id":"rs_%[1]d","summary":[{"type":"summary_text","text":"The file is read first."}],`+
			`"encrypted_content":%[2]s},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now the change."}]},`+
			`{"type":"function_call","id":"fc_%[1]d","call_id":"call_%[1]d","name":"exec_command","arguments":%[4]s},`+
			`{"type":"function_call_output","call_id":"call_%[1]d","output":%[5]s}`
	}
	recorded, err := os.ReadFile(filepath.Join("testdata/harness", file+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	code := "func (s *Store) Append(ctx context.Context, r *Record) error {\n\tif r == nil {\n\t\treturn errors.New(\"no record\")\n\t}\n\treturn nil\n}\n"
	quoted := func(s string) string { return string(jsonx.AppendString(nil, s)) }
	recorded = slices.Clone(jsonx.Get(recorded, "body"))
	said := jsonx.Get(recorded, member)
	end := cap(recorded) - cap(said) + len(said) - 1 // the bracket that closes it
	body := slices.Clone(recorded[:end])
	for i := 0; len(body) < size; i++ {
		input := fmt.Sprintf(`{"path":"/src/f%d.go","patch":%s}`, i, quoted(code))
		body = fmt.Appendf(body, turn, i, quoted(strings.Repeat("gAAAA", 40)), input, quoted(input), quoted(strings.Repeat(code, 6)))
	}
	body = append(body, recorded[end:]...)
	if !jsonx.Valid(body) {
		tb.Fatal("the request is no JSON")
	}
	return body
}
