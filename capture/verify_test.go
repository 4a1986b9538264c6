package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// rec is a record that has what Verify looks at.
func rec(call int, writer string, seq int) string {
	return fmt.Sprintf(`{"model_call_id":"%032x","rolltap":{"writer":%q,"seq":%d}}`, call, writer, seq)
}

// agreeing is a record with all that Verify compares; bad makes each pair disagree.
func agreeing(bad string) string {
	r := strings.NewReplacer("ROLLOUT", "a", "START", "1", "FIRST", "2", "DIALECT", "chat", "CATEGORY", "null", "REASON", `"sealed"`, "ATTEMPTED", "true", "STATUS", "200", "CACHED", "3", "SESSION", "s")
	if bad != "" {
		r = strings.NewReplacer("ROLLOUT", "b", "START", "9", "FIRST", "99", "DIALECT", "messages", "CATEGORY", `"timeout"`, "REASON", "null", "ATTEMPTED", "false", "STATUS", "404", "CACHED", "30", "SESSION", "t")
	}
	return r.Replace(`{"model_call_id":"1","dialect":"DIALECT","started_at":START,"completed_at":2,"latency_ms":10,"latency_ttft_ms":FIRST,"error_category":CATEGORY,` +
		`"client_session_id":"SESSION","upstream_attempted":ATTEMPTED,"response_source":"local","upstream_status_code":STATUS,"local_response_reason":REASON,"rolltap":{"rollout_id":"ROLLOUT",` +
		`"path":"/v1/chat/completions","outcome":"ok","upstream":{"status":200},"usage":{"prompt_tokens":12,"cached_tokens":CACHED},"client":{"session":"s"},"truncated":[]}}`)
}

func TestVerifyNames(t *testing.T) {
	for _, c := range []struct {
		name           string
		files          map[string]string
		want           []string
		clean, lenient bool
	}{
		{"nothing", nil, nil, true, true},
		{"whole", map[string]string{"a.capture.jsonl": rec(1, "w", 1) + "\n" + rec(2, "w", 2) + "\n"}, nil, true, true},
		{"records of another program", map[string]string{"a.capture.jsonl": "{}\n{\"model_call_id\":\"x\"}\n"}, nil, true, true},
		{"damaged", map[string]string{"a.capture.jsonl": "{}\n\n{not\n[]\n"}, []string{"a.capture.jsonl:3: damaged", "a.capture.jsonl:4: damaged"}, false, false},
		{"torn", map[string]string{"a.capture.jsonl": "{}\n{\"a\":"}, []string{"a.capture.jsonl:2: torn"}, false, false},
		{"whole but torn", map[string]string{"a.capture.jsonl": "{}\n{}"}, []string{"a.capture.jsonl:2: torn"}, false, false},
		{"hole", map[string]string{"a.capture.jsonl": "\x00\x00{}\n\x00\n"}, []string{"a.capture.jsonl:1: hole", "a.capture.jsonl:2: hole", "a.capture.jsonl:2: damaged"}, false, false},
		{"a call twice, in two files", map[string]string{"a.capture.jsonl": rec(1, "w", 1) + "\n", "b.capture.jsonl": "{}\n" + rec(1, "w", 1) + "\n"},
			[]string{"b.capture.jsonl:2: duplicate_call"}, false, false},
		{"a seq twice", map[string]string{"a.capture.jsonl": rec(1, "w", 1) + "\n" + rec(2, "w", 1) + "\n" + rec(3, "v", 1) + "\n"},
			[]string{"a.capture.jsonl:2: duplicate_seq"}, false, false},
		{"a gap", map[string]string{"a.capture.jsonl": rec(1, "w", 2) + "\n" + rec(2, "w", 4) + "\n" + rec(3, "v", 1) + "\n"}, []string{"a.capture.jsonl: gap"}, false, true},
		{"marked", map[string]string{"a.capture.incomplete": "", "b.c.capture.incomplete": "x"}, []string{"a.capture.incomplete: incomplete", "b.c.capture.incomplete: incomplete"}, false, true},
		{"members that agree", map[string]string{"a.capture.jsonl": agreeing("") + "\n"}, nil, true, true},
		{"members that disagree", map[string]string{"a.capture.jsonl": agreeing("x") + "\n"}, slices.Repeat([]string{"a.capture.jsonl:1: disagree"}, 10), false, true},
		{"not ours", map[string]string{".a.capture.jsonl": "{", "a.capture.damaged": "{", "README": "x", ".a.repair": "{"}, nil, true, true},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			write(t, dir, name, text)
		}
		var got []string
		report, err := Verify(dir, func(f Finding) { got = append(got, f.String()) })
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		ok := len(got) == len(c.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.HasPrefix(got[i], c.want[i]+":")
		}
		if !ok || report.Clean(true) != c.clean || report.Clean(false) != c.lenient {
			t.Errorf("%s: got %q, want %q; clean %t and %t", c.name, got, c.want, report.Clean(true), report.Clean(false))
		}
	}
	if _, err := Verify("/nonexistent", nil); err == nil {
		t.Error("a folder that does not exist is fine")
	}
}

// TestVerifyBesideWriters: a write that goes on is no torn tail.
func TestVerifyBesideWriters(t *testing.T) {
	s := newStore(t, Options{})
	stop := keepWriting(3, func(int) {
		if err := s.Append(t.Context(), record("r", callID(), `{"t":"`+strings.Repeat("x", inlineMax+10)+`"}`)); err != nil {
			t.Error(err)
		}
	})
	for range 8 {
		report, err := Verify(s.o.Dir, func(f Finding) { t.Error(f) })
		if err != nil || !report.Clean(false) {
			t.Errorf("%+v, %v", report, err)
		}
	}
	stop()
}

func TestRepair(t *testing.T) {
	for _, c := range []struct {
		name, in, data, damaged string
	}{
		{"whole", "{\"a\": 1 }\n\n [] \n", "{\"a\": 1 }\n", " [] \n"},
		{"torn", "{}\n{\"a\":", "{}\n", "{\"a\":\n"},
		{"whole but torn", " {} \n{\"a\":1}", " {} \n{\"a\":1}\n", ""},
		{"between", "{\"a\":1}\r\n{x\n{\"b\":2}\n", "{\"a\":1}\r\n{\"b\":2}\n", "{x\n"},
		{"holes", "\x00\x00{\"a\":1}\n\x00\x00\n", "{\"a\":1}\n", "\x00\x00\n"},
		{"nothing but damage", "x\ny", "", "x\ny\n"},
	} {
		dir := t.TempDir()
		write(t, dir, "r.capture.jsonl", c.in)
		write(t, dir, "fine.capture.jsonl", "{}\n")
		before, _ := os.Stat(dataPath(dir, "fine"))
		os.Chmod(dataPath(dir, "r"), 0o600)
		if _, err := Repair(t.Context(), dir, nil); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := content(t, dir, "r.capture.jsonl"); got != c.data {
			t.Errorf("%s: data %q, want %q", c.name, got, c.data)
		}
		if got := content(t, dir, "r.capture.damaged"); got != c.damaged {
			t.Errorf("%s: damaged %q, want %q", c.name, got, c.damaged)
		}
		after, _ := os.Stat(dataPath(dir, "fine"))
		if !os.SameFile(before, after) {
			t.Errorf("%s: a sound file was replaced", c.name)
		}
		if st, _ := os.Stat(dataPath(dir, "r")); st.Mode().Perm() != 0o600 {
			t.Errorf("%s: the mode became %v", c.name, st.Mode())
		}
		es, _ := os.ReadDir(dir)
		for _, e := range es {
			if strings.HasPrefix(e.Name(), ".") {
				t.Errorf("%s: it left %s", c.name, e.Name())
			}
		}
		if report, err := Verify(dir, func(f Finding) { t.Errorf("%s: %s", c.name, f) }); err != nil || !report.Clean(true) {
			t.Errorf("%s: %+v, %v", c.name, report, err)
		}
	}
}

// TestRepairBesideWriters: the file is replaced under writers, and nothing acknowledged is lost.
func TestRepairBesideWriters(t *testing.T) {
	s := newStore(t, Options{})
	acked := make([][]string, 4)
	stop := keepWriting(len(acked), func(w int) {
		call := callID()
		if err := s.Append(t.Context(), record("r", call, `{}`)); err != nil {
			t.Error(err)
		}
		acked[w] = append(acked[w], call)
	})
	moved, rounds := 0, 20
	if raceDetector {
		rounds = 6 // each waits for the lock twice, beside four writers
	}
	for i := range rounds {
		plant(t, s.o.Dir, "r", fmt.Sprintf("{torn %d", i))
		report, err := Repair(t.Context(), s.o.Dir, nil)
		if err != nil {
			t.Error(err)
		}
		moved += report.Found[FoundTorn] + report.Found[FoundDamaged]
	}
	stop()
	if _, err := Repair(t.Context(), s.o.Dir, nil); err != nil {
		t.Error(err)
	}
	got := readBack(t, s.o.Dir, "r")
	have := got.calls()
	for _, c := range slices.Concat(acked...) {
		if have[c] != 1 {
			t.Errorf("an acknowledged call is there %d times", have[c])
		}
	}
	if n := strings.Count(content(t, s.o.Dir, "r.capture.damaged"), "{torn "); n != rounds || got.damaged+got.torn > 0 || moved != rounds {
		t.Errorf("%d torn tails were kept, %d found, %d damaged lines are left", n, moved, got.damaged)
	}
}

func TestRepairWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.capture.jsonl", "x\n")
	write(t, dir, "b.capture.jsonl", "x\n")
	held, err := osFiles{}.open(dataPath(dir, "a"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20_000_000)
	defer cancel()
	if _, err := Repair(ctx, dir, nil); err == nil || !strings.Contains(err.Error(), "repair a") {
		t.Errorf("got %v", err)
	}
	if content(t, dir, "a.capture.jsonl") != "x\n" {
		t.Error("a locked file was touched")
	}
}
