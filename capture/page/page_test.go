package page

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rolltap/capture/trajectory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// render is the page of a rollout with these lines.
func render(t testing.TB, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.capture.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := trajectory.Read(dir, "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, r, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// line is a record of Chat.
func line(n int, request, response any, own map[string]any) string {
	all := map[string]any{"v": 1, "outcome": "ok", "stream": true, "usage": map[string]any{"prompt_tokens": 10 * n, "completion_tokens": n, "cached_tokens": 3}}
	for k, v := range own {
		all[k] = v
	}
	start := 1795000000 + float64(3*n)
	b, err := json.Marshal(map[string]any{"model_call_id": fmt.Sprintf("%032x", n), "dialect": "chat", "started_at": start, "completed_at": start + 2, "latency_ms": 2000.0,
		"latency_ttft_ms": 250.0, "status_code": 200, "request": request, "response": response, "rolltap": all})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func says(role string, content any, more ...any) map[string]any {
	m := map[string]any{"role": role, "content": content}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func reply(m any) any {
	return map[string]any{"model": "m", "choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": "stop"}}}
}

func asks(messages ...any) any {
	return map[string]any{"model": "m", "messages": messages, "tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "sh"}}}}
}

// markup finds what a browser takes for a tag.
var markup = regexp.MustCompile(`<[a-zA-Z/!?][^>]*>?`)

// checkInert: what is markup in a page is the page's own.
func checkInert(t *testing.T, html string) {
	t.Helper()
	if n := strings.Count(html, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	own := regexp.MustCompile(`^<(/?(html|head|title|body|header|nav|main|div|span|h1|h3|b|i|s|p|pre|dl|dt|dd|details|summary|section|button|script|style)|meta|a|/a|img|!doctype)( [a-z-]+(="[^"<>]*")?)*>$`)
	body := strings.Replace(strings.Replace(html, script, "", 1), style, "", 1)
	for _, tag := range markup.FindAllString(body, -1) {
		if !own.MatchString(tag) {
			t.Fatalf("not the page's own: %q", tag)
		}
		if strings.Contains(tag, " on") || strings.Contains(tag, "javascript:") {
			t.Fatalf("acts: %q", tag)
		}
	}
	for _, r := range html {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("the character %U is in the page", r)
		}
	}
	if !slices.Equal(opened(body), []string{}) {
		t.Errorf("left open: %q", opened(body))
	}
}

// opened are the tags that are not closed, or that close what is not open.
func opened(body string) []string {
	stack := []string{}
	for _, m := range regexp.MustCompile(`<(/?)([a-z0-9]+)`).FindAllStringSubmatch(body, -1) {
		switch {
		case slices.Contains([]string{"meta", "img"}, m[2]):
		case m[1] == "":
			stack = append(stack, m[2])
		case len(stack) > 0 && stack[len(stack)-1] == m[2]:
			stack = stack[:len(stack)-1]
		default:
			return append(stack, "/"+m[2])
		}
	}
	return stack
}

// hostile texts, each of which would do something if it got through.
func hostile() []string {
	return []string{
		`</script><script>alert(1)</script>`, `</style><style>*{display:none}`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`,
		"\x1b[2J\x1b]0;title\x07", "\u202egnp.exe\u202c", "<!--", "]]>", "&lt;b&gt;", "\x00\x01\x7f\u0085\u2028", "<plaintext>", "\ufeff<textarea>",
	}
}

// TestHostile: nothing that stands in a record is markup, wherever it stands.
func TestHostile(t *testing.T) {
	for _, h := range hostile() {
		call := map[string]any{"id": h, "type": "function", "function": map[string]any{"name": h, "arguments": `{"k":` + quoted(h) + `}`}}
		bad := map[string]any{"id": h, "type": "function", "function": map[string]any{"name": h, "arguments": h}}
		html := render(t,
			line(1, asks(says("system", h), says(h, h), says("user", []any{map[string]any{"type": h}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + h}}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": h}}})),
				reply(says("assistant", h, "reasoning_content", h, "tool_calls", []any{call, bad}, "refusal", h)),
				map[string]any{"outcome": h, "finish_reason": h, "losses": []any{map[string]any{"path": h, "reason": h}}, "truncated": []any{h}, "client": map[string]any{"session": h, "agent": h}, "upstream": map[string]any{"dialect": h}}),
			line(2, asks(says("user", strings.Repeat(h, 3000))), map[string]any{"error": map[string]any{"message": h}}, map[string]any{"outcome": "upstream_error"}),
			`{"model_call_id":"x","dialect":`+quoted(h)+`,"request_raw":`+quoted(h)+`,"response_raw":`+quoted(h)+`,"error_category":`+quoted(h)+`,"local_response_reason":`+quoted(h)+`}`,
			`{"model_call_id":"y","dialect":"chat","request":{"messages":[{"role":"user","content":"\ud800 </script> \udfff"}]},"response":null}`)
		checkInert(t, html)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestPage compares a page with testdata/page.html, without style and script.
func TestPage(t *testing.T) {
	ls := map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "sh", "arguments": `{"cmd":"ls\n-la","n":[1,2]}`}}
	ask := says("user", "What is here?")
	html := render(t,
		line(1, asks(says("system", strings.Repeat("Be brief.\n", 40)), ask), nil, map[string]any{"outcome": "upstream_timeout"}),
		line(2, asks(says("system", strings.Repeat("Be brief.\n", 40)), ask), reply(says("assistant", "I look.", "reasoning_content", "A folder.", "tool_calls", []any{ls})), map[string]any{"finish_reason": "tool_calls"}),
		"{\"torn\":",
		line(3, asks(says("system", strings.Repeat("Be brief.\n", 40)), ask, says("assistant", "I look.", "tool_calls", []any{ls}), says("tool", "a\nb", "tool_call_id", "c1"),
			says("user", []any{map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}}})),
			reply(says("assistant", strings.Repeat("Two files. ", 7000))), map[string]any{"losses": []any{map[string]any{"path": "metadata", "reason": "no_equivalent"}}, "upstream": map[string]any{"dialect": "messages"}}),
	)
	checkInert(t, html)
	for _, part := range []string{script, style, hashed(script)} {
		if !strings.Contains(html, part) {
			t.Error("style, script or its hash is not there")
		}
		html = strings.Replace(html, part, "…", 1)
	}
	html = strings.ReplaceAll(html, "</section>", "</section>\n")
	html = regexp.MustCompile(`(Two files\. ){100,}`).ReplaceAllString(html, "Two files. (many) ")
	if *update {
		if err := os.WriteFile("testdata/page.html", []byte(html), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/page.html")
	if err != nil || html != string(want) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, html, want)
	}
}

// BenchmarkPage makes the page of a rollout of 500 calls, each with all that was said before.
func BenchmarkPage(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "r.capture.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	var messages []any
	messages = append(messages, says("user", "Fix it."))
	for n := range 500 {
		id := fmt.Sprint("call_", n)
		m := says("assistant", "Looking.", "tool_calls", []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "sh", "arguments": `{"cmd":"cat file"}`}}})
		fmt.Fprintln(f, line(n+1, asks(messages...), reply(m), nil))
		messages = append(messages, m, says("tool", strings.Repeat("some line of code // größer\n", 45), "tool_call_id", id))
	}
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	b.ReportAllocs()
	for b.Loop() {
		r, err := trajectory.Read(dir, "r", nil)
		if err != nil {
			b.Fatal(err)
		}
		var page bytes.Buffer
		if err := Write(&page, r, Options{Dir: dir}); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzText: whatever a text is, it is text on the page.
func FuzzText(f *testing.F) {
	for _, h := range hostile() {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, h string) {
		checkInert(t, render(t, line(1, asks(says("system", h), says(h, h)), reply(says("assistant", h, "tool_calls", []any{
			map[string]any{"id": h, "type": "function", "function": map[string]any{"name": h, "arguments": h}}})), map[string]any{"outcome": h, "client": map[string]any{"session": h}})))
	})
}
