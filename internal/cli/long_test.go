package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExportLongLines: what is exported of a store does not change when its lines become too long to be read whole. The member that makes
// them so has very many texts, so that of all others little more than a name is kept in memory.
func TestExportLongLines(t *testing.T) {
	var pad strings.Builder
	pad.WriteString(`"request":{"pad":["` + strings.Repeat("x", 3<<20) + `"`)
	for range 12000 {
		pad.WriteString(`,"` + strings.Repeat("y", 100) + `"`)
	}
	pad.WriteString(`],"more":0,`)
	padding := strings.TrimPrefix(pad.String(), `"request":`)
	long, n := t.TempDir(), 0
	for _, dir := range []string{store, gymStore} {
		files, err := filepath.Glob(filepath.Join(dir, "*.capture.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, head := range []string{`"request":{"`, `"request": {"`} {
				n += bytes.Count(b, []byte(head))
				b = bytes.ReplaceAll(b, []byte(head), []byte(pad.String()+`"`))
			}
			if err := os.WriteFile(filepath.Join(long, filepath.Base(f)), b, 0o640); err != nil {
				t.Fatal(err)
			}
		}
		marks, _ := filepath.Glob(filepath.Join(dir, "*.capture.incomplete"))
		for _, f := range marks {
			if err := os.WriteFile(filepath.Join(long, filepath.Base(f)), nil, 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 30 {
		t.Fatalf("only %d lines are long", n)
	}
	for _, dir := range []string{store, gymStore} {
		files, _ := filepath.Glob(filepath.Join(dir, "*.capture.jsonl"))
		if raceDetector {
			files = files[:min(1, len(files))] // they take seconds each, and there is one goroutine
		}
		for _, f := range files {
			id := strings.TrimSuffix(filepath.Base(f), ".capture.jsonl")
			for _, payloads := range []bool{false, true} { // in every one of its bytes
				short, _ := printed(t, Export{Store: dir, Format: "gym", Rollouts: []string{id}, Payloads: payloads})
				beyond, _ := printed(t, Export{Store: long, Format: "gym", Rollouts: []string{id}, Payloads: payloads})
				if beyond = strings.ReplaceAll(beyond, padding, "{"); short != beyond {
					t.Errorf("%s gym, payloads %t (-short +long):\n%s", id, payloads, cmp.Diff(short, beyond))
				}
			}
			for _, format := range []string{"chat", "trajectory", "html"} {
				short, told := printed(t, Export{Store: dir, Format: format, Rollouts: []string{id}})
				beyond, toldBeyond := printed(t, Export{Store: long, Format: format, Rollouts: []string{id}})
				if told != toldBeyond {
					t.Errorf("%s %s: told %q, of long lines %q", id, format, told, toldBeyond)
				}
				if short == beyond {
					continue
				}
				var a, b any
				if format == "html" || json.Unmarshal([]byte(short), &a) != nil || json.Unmarshal([]byte(beyond), &b) != nil || !cmp.Equal(a, b) {
					t.Errorf("%s %s (-short +long):\n%s", id, format, cmp.Diff(short, beyond))
				}
			}
		}
	}
}

// printed runs an export to standard output.
func printed(t *testing.T, e Export) (text, told string) {
	t.Helper()
	var out, notes strings.Builder
	if err := e.Run(t.Context(), &Console{Out: &out, Note: func(s string) { notes.WriteString(s + "\n") }}); err != nil {
		t.Fatal(err)
	}
	return out.String(), notes.String()
}

// exportMemory is how much memory an export may take, in bytes, whatever is in the store.
const exportMemory = 64 << 20

// TestExportMemory: an export of a rollout with lines of many megabytes takes little memory, and leaves nothing out.
func TestExportMemory(t *testing.T) {
	if dir := os.Getenv("EXPORT_MEMORY_STORE"); dir != "" {
		e := Export{Store: dir, Out: os.Getenv("EXPORT_MEMORY_OUT"), Results: os.Getenv("EXPORT_MEMORY_RESULTS")}
		e.Format, e.Payloads = strings.CutSuffix(os.Getenv("EXPORT_MEMORY_FORMAT"), " with payloads")
		if e.Results == "" {
			e.Rollouts = []string{"r"}
		}
		if err := e.Run(context.Background(), &Console{Out: io.Discard}); err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.Write(status)
		return
	}
	if _, err := os.Stat("/proc/self/status"); err != nil || raced() {
		t.Skip("only Linux tells how much memory a process took, and the race detector takes a multiple")
	}
	dir := t.TempDir()
	longStore(t, dir, 8<<20)
	rows := written(t, `{"_ng_rollout_id":"r","reward":1}`+"\n"+`{"_ng_rollout_id":"r","ng_model_call_capture":{"old":1},"reward":0}`+"\n")
	const all = 8*8<<20 + 500<<10 // what the store has, almost: eight large values, one of them twice in requests, and many messages
	for _, c := range []struct {
		format, results string
		least, most     int64 // bytes that are written
	}{
		{"html", "", 100 << 10, 14 << 20},
		{"chat", "", 24 << 20, 32 << 20},
		{"trajectory", "", 24 << 20, 44 << 20},
		{"trajectory with payloads", "", 24<<20 + all, 44<<20 + all},
		{"gym", "", 8 << 20, 9 << 20}, // the arguments of a call are part of a record
		{"gym with payloads", "", 8<<20 + all, 9<<20 + all},
		{"gym", rows, 16 << 20, 18 << 20},
		{"gym with payloads", rows, 16<<20 + 2*all, 18<<20 + 2*all},
	} {
		format := c.format
		out := filepath.Join(t.TempDir(), "out.html")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestExportMemory$")
		cmd.Env = append(os.Environ(), "EXPORT_MEMORY_STORE="+dir, "EXPORT_MEMORY_FORMAT="+format, "EXPORT_MEMORY_OUT="+out, "EXPORT_MEMORY_RESULTS="+c.results, "GOMEMLIMIT=off", "GOGC=100")
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", format, err, b)
		}
		var took int64 // at its height; the child's own, while what wait tells begins with the parent's
		if _, s, ok := strings.Cut(string(b), "VmHWM:"); ok {
			fmt.Sscan(s, &took)
			took <<= 10
		}
		st, err := os.Stat(out)
		if err != nil || st.Size() < c.least || st.Size() > c.most {
			t.Errorf("%s: %v, %d bytes were written", format, err, st.Size())
		}
		if took == 0 || took > exportMemory {
			t.Errorf("%s took %d MiB, with results %t", format, took>>20, c.results != "")
		}
		t.Logf("%s: %d MiB of memory, %d bytes written", format, took>>20, st.Size())
	}
}

// raced reports whether the race detector is on.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// longStore writes a rollout in which everything is large that can be: a message, the result of a tool, an image, an answer, the arguments of a
// call, the number of messages, a tool and the text of an answer that is no JSON. A call has one or two of them, of so many bytes each.
func longStore(t *testing.T, dir string, bytes int) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "r.capture.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	text := `"` + strings.Repeat(`some words of a text, \"quoted\", in lines\n`, bytes/43) + `"`
	image := `"data:image/png;base64,` + strings.Repeat("iVBORw0KGgoAAAAN", bytes/16) + `"`
	var many strings.Builder
	for i := 0; many.Len() < bytes; i++ {
		many.WriteString(`{"role":"user","content":"` + strings.Repeat("word ", 4000) + strconv.Itoa(i) + `"},`)
	}
	const (
		hi   = `{"role":"user","content":"hi"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"sh","arguments":"{}"}}]}`
	)
	n := 0
	record := func(request, answer, more string) {
		n++
		fmt.Fprintf(w, `{"model_call_id":"call%d","dialect":"chat","model_ref":null,"started_at":17950000%02d.0,"completed_at":17950000%02d.5,"status_code":200,"error_category":null,`+
			`"request":%s,"response":%s%s,"rolltap":{"v":1,"outcome":"ok","finish_reason":"stop","stream":true,"losses":[],"truncated":[]}}`+"\n", n, n, n, request, answer, more)
	}
	asks := func(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }
	says := func(message string) string { return `{"id":"c","choices":[{"index":0,"message":` + message + `}]}` }
	record(asks(hi), "null", `,"response_raw":`+text)
	record(asks(hi), says(`{"role":"assistant","content":null,"tool_calls":[{"id":"t0","type":"function","function":{"name":"write","arguments":`+text+`}}]}`), "")
	record(`{"model":"m","tools":[{"type":"function","function":{"name":"sh","description":`+text+`}}],"messages":[`+many.String()+hi+`]}`, says(`{"role":"assistant","content":"Hello."}`), "")
	record(asks(hi), says(call), "")
	result := hi + "," + call + `,{"role":"tool","tool_call_id":"t1","content":` + text + `}`
	record(asks(result), says(`{"role":"assistant","content":"Seen."}`), "")
	result += `,{"role":"assistant","content":"Seen."},{"role":"user","content":[{"type":"image_url","image_url":{"url":` + image + `}}]}`
	record(asks(result), says(`{"role":"assistant","content":`+text+`}`), "")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
