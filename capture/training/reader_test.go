package training

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// readAll reads everything, damage included, in pieces of this size.
func readAll(t testing.TB, b []byte, piece int) (views []*View, damage []*Damage) {
	t.Helper()
	r := NewReader(bytes.NewReader(b), 0, int64(len(b)))
	r.buf = r.buf[:piece]
	for {
		v, err := r.Next()
		if err == io.EOF {
			if r.Offset() != int64(len(b)) {
				t.Fatalf("the end is at %d of %d", r.Offset(), len(b))
			}
			return views, damage
		}
		if d := (*Damage)(nil); errors.As(err, &d) {
			damage = append(damage, d)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
}

// TestPieces: how a file is cut into reads makes no difference.
func TestPieces(t *testing.T) {
	var file []byte
	for rollout, store := range fixtures(t) {
		file = append(file, read(t, dataPath(filepath.Join("testdata/tokens", store), rollout))...)
	}
	file = append(file, " \t\r\n\n {\"half\n"+strings.ReplaceAll(strings.TrimSpace(string(file[:bytes.IndexByte(file, '\n')])), ",", " ,\t")+"  \r\n[]\n{\"torn\":\"\\ud8"...)
	want, damage := readAll(t, file, readSize)
	if len(want) < 20 || len(damage) != 3 || !damage[2].Torn || damage[1].Torn || damage[0].Torn {
		t.Fatalf("%d entries, damage %+v", len(want), damage)
	}
	for _, piece := range []int{1, 2, 3, 7, 100, 1000, 4096} {
		views, d := readAll(t, file, piece)
		if !reflect.DeepEqual(views, want) {
			t.Errorf("in pieces of %d: other entries", piece)
		}
		if !reflect.DeepEqual(d, damage) {
			t.Errorf("in pieces of %d: damage %+v", piece, d)
		}
	}
}

// TestShrinkingFile: a file that becomes shorter while it is read is an error, and no end.
func TestShrinkingFile(t *testing.T) {
	l := encodeLine(t, newEntry("r", "c1", "[1]", "[2]"))
	r := NewReader(strings.NewReader(l), 0, int64(len(l))+10)
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ array, want string }{
		{"[]", ""}, {"[ ]", ""}, {"[1]", "1"}, {"[ 1 ,\t-2.5e+3 , 0 ]", "1 -2.5e+3 0"}, {"[1," + strings.Repeat("9", 400) + "]", "1 " + strings.Repeat("9", 400)},
		{"[1," + strings.Repeat("9", 401) + "]", "error"}, {"[null]", "error"}, {"[[1]]", "error"}, {`["1"]`, "error"}, {"[1,true]", "error"}, {"[{}]", "error"},
	} {
		var l locator
		var span Span
		l.reset(func(m *member) { span = m.span })
		text := `{"a":` + c.array + `}`
		l.feed([]byte(text), 0)
		n := span.Numbers(strings.NewReader(text))
		n.buf = n.buf[:3]
		var got []string
		for n.Next() {
			got = append(got, string(n.Text()))
		}
		if n.Err() != nil {
			wantErr(t, c.array, n.Err(), ErrEntry)
			got = []string{"error"}
		} else if int64(len(got)) != span.Count {
			t.Errorf("%s: %d numbers, counted %d", c.array, len(got), span.Count)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", c.array, got)
		}
	}
	if n := (Span{Kind: jsonx.KindObject}).Numbers(strings.NewReader("{}")); n.Next() || n.Err() == nil {
		t.Error("the numbers of an object")
	}
}

func seeds(f *testing.F) {
	for rollout, store := range fixtures(f) {
		b := read(f, dataPath(filepath.Join("testdata/tokens", store), rollout))
		f.Add(b)
		f.Add(b[:len(b)*2/3])
	}
	var cases []struct{ Line string }
	if err := json.Unmarshal(read(f, "testdata/canon/lines.json"), &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add([]byte(c.Line))
	}
	for _, s := range []string{"", "\n", "{}", "{\n{}", "[]\n", "\x00\x00", "\ufeff{}", `{"a":"\`, `{"schema\u005fversion":1}`, strings.Repeat("[", 600), `{"` + strings.Repeat("k", keyMax-2) + `\u0041":1}`} {
		f.Add([]byte(s))
	}
}

// FuzzReader: no file makes the reader panic or hang. What it takes for an entry is one to another reader, too, and where it says that the
// values are, they are. How the file is cut into reads makes no difference.
func FuzzReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		views, damage := readAll(t, file, readSize)
		for _, piece := range []int{1, 5} {
			if again, d := readAll(t, file, piece); !reflect.DeepEqual(views, again) || !reflect.DeepEqual(damage, d) {
				t.Fatalf("in pieces of %d: %+v and %+v", piece, again, d)
			}
		}
		for i, d := range damage {
			if d.Torn && (i+1 < len(damage) || !d.Last) {
				t.Fatalf("torn in the middle: %+v", d)
			}
		}
		for _, v := range views {
			line := file[v.Offset : v.Offset+v.Size]
			if sha256.Sum256(line) != v.Sum {
				t.Fatalf("the sum is not that of %q", line)
			}
			var m map[string]json.RawMessage
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			var call string
			if err := json.Unmarshal(m["model_call_id"], &call); err != nil || call != v.CallID {
				t.Fatalf("%q is call %q, %v", line, v.CallID, err)
			}
			for name, span := range map[string]Span{
				"prompt_token_ids": v.Prompt, "generation_token_ids": v.Generation, "generation_log_probs": v.LogProbs, "output_items": v.OutputItems,
				"routed_experts": v.RoutedExperts, "rolltap": v.Rolltap,
			} {
				at := bytes.TrimSpace(file[span.Offset : span.Offset+span.Size])
				if string(at) != string(m[name]) {
					t.Fatalf("%s is %q, want %q", name, at, m[name])
				}
				if span.Kind != jsonx.KindArray {
					continue
				}
				var elements []json.RawMessage
				if err := json.Unmarshal(at, &elements); err != nil || int64(len(elements)) != span.Count {
					t.Fatalf("%q has %d elements, counted %d, %v", at, len(elements), span.Count, err)
				}
			}
			v.checkArrays(bytes.NewReader(file))
		}
	})
}

// FuzzStore: whatever the files hold, nothing panics, and what is frozen stays the same; a call more or a proof changes nothing that was there
// and is whole.
func FuzzStore(f *testing.F) {
	for rollout, store := range fixtures(f) {
		dir := filepath.Join("testdata/tokens", store)
		f.Add(read(f, dataPath(dir, rollout)), read(f, statePath(dir, rollout)), read(f, intentsPath(dir, rollout)))
		f.Add(read(f, dataPath(dir, rollout)), []byte(nil), []byte("c9\nc"))
	}
	f.Add([]byte("{"), []byte(`{"frozen":true,"snapshot_id":"x","version":-1}`), []byte(" \r\n"))
	f.Add([]byte(nil), []byte(`{"retired":true,"frozen":true,"snapshot_id":"x"}`), []byte(nil))
	f.Fuzz(func(t *testing.T, data, state, intents []byte) {
		dir := t.TempDir()
		for path, b := range map[string][]byte{dataPath(dir, "linear"): data, statePath(dir, "linear"): state, intentsPath(dir, "linear"): intents} {
			if len(b) > 0 {
				write(t, path, string(b))
			}
		}
		if _, err := Verify(dir, "linear"); err != nil {
			t.Fatal(err)
		}
		if p, err := Peek(dir, "linear"); err == nil {
			var b bytes.Buffer
			if err := p.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
				t.Fatalf("%v: %q", err, b.Bytes())
			}
			p.Close()
		}
		s := newStore(t, dir)
		s.Candidates("linear", "f")
		putErr := s.Put(t.Context(), keyed("linear", "c-new", "f"))
		snap, err := s.Freeze(t.Context(), "linear")
		if err != nil {
			if got := read(t, dataPath(dir, "linear")); len(got) < len(data) && putErr != nil && !errors.Is(err, ErrRetired) && !bytes.HasPrefix(data, got) {
				t.Fatalf("%v, and %q became %q", err, data, got)
			}
			return
		}
		defer snap.Close()
		count := func(p *Snapshot) (n int, found bool) {
			r := p.Entries()
			for {
				v, err := r.Next()
				if err == io.EOF {
					return n, found
				}
				if n++; errors.As(err, new(*Damage)) {
					continue // in what the state vouches for
				}
				if err != nil {
					t.Fatal(err)
				}
				found = found || v.CallID == "c-new"
			}
		}
		n, found := count(snap)
		if putErr == nil && !found {
			t.Fatal("an acknowledged call is missing")
		}
		again, err := newStore(t, dir).Freeze(t.Context(), "linear")
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if m, _ := count(again); m != n || again.ID != snap.ID || again.Version != snap.Version || again.Incomplete != snap.Incomplete {
			t.Fatalf("%+v and %+v", snap, again)
		}
		if ok, err := s.Drop(t.Context(), "linear", snap.ID, snap.Version); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, err := os.Lstat(dataPath(dir, "linear")); err == nil {
			t.Fatal("dropped, and still there")
		}
	})
}

// FuzzCanon: canonical is what it stays, and it says the same as before.
func FuzzCanon(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.50,-0.0,1e400,1e-7,null]}`, `{"a":1,"a":2}`, `"\u00e9\ud83d\ude00\u0000"`, `[1e16,123456789012345678901234567890]`, `{"\u0061":{"":0}}`, " [ 1 , 2 ] "} {
		f.Add([]byte(s))
	}
	var cases []struct{ In string }
	if err := json.Unmarshal(read(f, "testdata/canon/lines.json"), &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add([]byte(c.In))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := canonAny(raw)
		if err != nil || len(raw) == 0 {
			return
		}
		if !jsonx.Valid(out) {
			t.Fatalf("%q becomes %q", raw, out)
		}
		if again, err := canonAny(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q, then %q, %v", out, again, err)
		}
		var a, b any
		if json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &a) != nil {
			return // a number of a member that does not count may be beyond its doubles
		}
		if json.Unmarshal(out, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q becomes %q", raw, out)
		}
	})
}
