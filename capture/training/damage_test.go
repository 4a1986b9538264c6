package training

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestDamagedEntries: a file of entries with a line that nobody wrote whole, in front of one that somebody did, is not used and not changed.
// It can be proven, marked and deleted.
func TestDamagedEntries(t *testing.T) {
	good := encodeLine(t, newEntry("r", "c1", "[1,2]", "[3]"))
	behind := encodeLine(t, newEntry("r", "c9", "[1]", "[2]"))
	with := func(old, to string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(good, old, to, 1)
	}
	for _, c := range []struct{ name, line, want string }{
		{"half a line", good[:99] + "\n", "no JSON"},
		{"text", "hello\n", "no JSON"},
		{"NUL bytes", strings.Repeat("\x00", 9000) + "\n", "no JSON"},
		{"a byte-order mark", "\ufeff" + good, "no JSON"},
		{"invalid UTF-8", with(`"m"`, "\"\xff\""), "no JSON"},
		{"a control character", with(`"m"`, "\"\x01\""), "no JSON"},
		{"deeper than may be", with(`"m"`, strings.Repeat("[", 600)+strings.Repeat("]", 600)), "no JSON"},
		{"two objects", strings.TrimSuffix(good, "\n") + good, "no JSON"},
		{"an array", "[1]\n", "no object"},
		{"a number", "12\n", "no object"},
		{"null", "null\n", "no object"},
		{"an empty object", "{}\n", "no rollout id"},
		{"no call id", with(`"model_call_id":"c1",`, ""), "no rollout id or no call id"},
		{"no prompt", with(`"prompt_token_ids":[1,2],`, ""), "array of tokens is missing"},
		{"a prompt that is null", with(`"prompt_token_ids":[1,2]`, `"prompt_token_ids":null`), "prompt_token_ids is no array"},
		{"an object in the prompt", with(`[1,2]`, `[1,{}]`), "an element is no number"},
		{"a text in the prompt", with(`[1,2]`, `["1",2]`), "an element is no number"},
		{"an array in the prompt", with(`[1,2]`, `[1,[2]]`), "an element is no number"},
		{"a prompt in two arrays", with(`[1,2]`, `[[1,2]]`), "an element is no number"},
		{"a negative id", with(`[1,2]`, `[1,-2]`), "no integer from 0"},
		{"a fraction as an id", with(`[1,2]`, `[1,2.0]`), "no integer from 0"},
		{"an id that is too large", with(`[1,2]`, `[18446744073709551616]`), "no integer from 0"},
		{"a word among the log probabilities", with(`[-0.5]`, `[null]`), "an element is no number"},
		{"log probabilities missing", with(`[-0.5]`, `[]`), "1 generated ids and 0 log probabilities"},
		{"a schema of later", with(`"schema_version":1`, `"schema_version":2`), "schema version 2"},
		{"a schema of before", with(`"schema_version":1`, `"schema_version":0`), "schema version 0"},
		{"a schema in words", with(`"schema_version":1`, `"schema_version":"1"`), "schema_version is no integer"},
		{"another rollout", with(`"rollout_id":"r"`, `"rollout_id":"s"`), `an entry of rollout "s"`},
		{"an unknown resolution", with(`"root"`, `"guessed"`), "unknown parent resolution"},
		{"a root with a parent", with(`"parent_call_id":null`, `"parent_call_id":"c0"`), "root with a parent"},
		{"resolved without a parent", with(`"root"`, `"resolved"`), "resolved without a parent"},
		{"a delta that is a root", with(`"prompt_is_delta":false`, `"prompt_is_delta":true`), "a delta without a resolved parent"},
		{"a flag in words", with(`"prompt_is_delta":false`, `"prompt_is_delta":"no"`), "prompt_is_delta is no boolean"},
		{"an item that is not there", with(`"token_item_index":0`, `"token_item_index":1`), "item 1 of 1"},
		{"a negative item", with(`"token_item_index":0`, `"token_item_index":-1`), "token_item_index is negative"},
		{"a time in words", with(`"created_at":1.0`, `"created_at":"now"`), "created_at is no number"},
		{"a long length", with(`"cum_len":3`, `"cum_len":99999999999999999999`), "cum_len is no integer"},
		{"a name in escapes", with(`"schema_version":1`, `"schema\u005fversion":2`), "schema version 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := behind + c.line + encodeLine(t, newEntry("r", "c8", "[1]", "[2]"))
			write(t, dataPath(dir, "r"), file)
			s := newStore(t, dir)
			wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrDamaged)
			_, err := s.Freeze(t.Context(), "r")
			wantErr(t, "freeze", err, ErrDamaged)
			if got := string(read(t, dataPath(dir, "r"))); got != file {
				t.Error("the file was changed")
			}
			wantProblem(t, dir, "r", c.want)
			if err := s.Mark(t.Context(), "r", "c1", "damaged"); err != nil {
				t.Errorf("mark: %v", err)
			}
			// A reader that goes on finds what is whole.
			r := NewReader(strings.NewReader(file), 0, int64(len(file)))
			var calls []string
			for {
				v, err := r.Next()
				if err == io.EOF {
					break
				}
				if d := (*Damage)(nil); errors.As(err, &d) {
					if d.Line != 2 || d.Offset != int64(len(behind)) || d.Last || d.Torn {
						t.Errorf("damage %+v", d)
					}
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, v.CallID)
			}
			if got := strings.Join(calls, " "); got != "c9 c8" && got != "c9 c1 c8" {
				t.Errorf("read %s", got)
			}
			if err := s.Delete(t.Context(), "r"); err != nil {
				t.Error(err)
			}
			put(t, s, newEntry("r", "c2", "[1]", "[2]"))
		})
	}
}

// TestWrongSums: what is well written and untrue is found by who proves it.
func TestWrongSums(t *testing.T) {
	good := encodeLine(t, newEntry("r", "c1", "[1,2]", "[3]"))
	for _, c := range []struct{ name, old, to, want string }{
		{"the digest", `"digest":"`, `"digest":"0`, "the digest is not that of the sequence"},
		{"the length", `"cum_len":3`, `"cum_len":4`, "cum_len is 4, the sequence has 3"},
		{"an id", `[1,2]`, `[1,7]`, "the digest is not that of the sequence"},
	} {
		dir := t.TempDir()
		write(t, dataPath(dir, "r"), strings.Replace(good, c.old, c.to, 1))
		wantProblem(t, dir, "r", c.want)
	}
	dir := t.TempDir()
	s := newStore(t, dir)
	put(t, s, newEntry("r", "c1", "[1,2]", "[3]"))
	freeze(t, s, "r")
	noProblems(t, dir, "r")
	b := read(t, dataPath(dir, "r"))
	write(t, dataPath(dir, "r"), string(bytes.Replace(b, []byte(`"model":"m"`), []byte(`"model":"n"`), 1)))
	wantProblem(t, dir, "r", "call c1 has the digest")
	write(t, dataPath(dir, "r"), string(bytes.Replace(b, []byte(`"model_call_id":"c1"`), []byte(`"model_call_id":"c2"`), 1)))
	wantProblem(t, dir, "r", "call c1 has a digest and no entry")
	wantProblem(t, dir, "r", "call c2 is within what is indexed and has no digest")
	write(t, dataPath(dir, "r"), string(b)+string(b))
	wantProblem(t, dir, "r", "call c1 is on line 1 already, with the same payload")
	if err := os.WriteFile(markerPath(dir, "r"), []byte("c1\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, dir, "r", "there is a marker, and the state is not incomplete")
}

// TestDamagedStates: what a state says that cannot be is not believed, and nothing is written over it.
func TestDamagedStates(t *testing.T) {
	const rest = `"incomplete":false,"retired":false,"snapshot_id":"","version":1`
	for _, c := range []struct{ name, state, want string }{
		{"empty", "", "no JSON object"},
		{"half", `{"entry_digests":{},"fro`, "no JSON object"},
		{"an array", "[]", "no JSON object"},
		{"a flag in words", `{"entry_digests":{},"frozen":"no","indexed_size":0,` + rest + "}", "state's frozen"},
		{"a version in words", `{"entry_digests":{},"frozen":false,"indexed_size":0,"version":"1"}`, "state's version"},
		{"an index before the beginning", `{"entry_digests":{},"frozen":false,"indexed_size":-1,` + rest + "}", "indexed_size is negative"},
		{"an index behind the end", `{"entry_digests":{},"frozen":false,"indexed_size":10000000,` + rest + "}", "indexed"},
		{"frozen as nothing", `{"entry_digests":{},"frozen":true,"indexed_size":0,` + rest + "}", "frozen without a snapshot id"},
		{"a short digest", `{"entry_digests":{"c1":"ab"},"frozen":false,"indexed_size":0,` + rest + "}", "state's entry_digests"},
		{"a digest of digits", `{"entry_digests":{"c1":12},"frozen":false,"indexed_size":0,` + rest + "}", "state's entry_digests"},
	} {
		dir := t.TempDir()
		write(t, dataPath(dir, "r"), encodeLine(t, newEntry("r", "c1", "[1]", "[2]")))
		write(t, statePath(dir, "r"), c.state)
		s := newStore(t, dir)
		wantErr(t, c.name+": put", s.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrDamaged)
		_, err := s.Freeze(t.Context(), "r")
		wantErr(t, c.name+": freeze", err, ErrDamaged)
		if got := string(read(t, statePath(dir, "r"))); got != c.state {
			t.Errorf("%s: the state became %q", c.name, got)
		}
		wantProblem(t, dir, "r", c.want)
		if n, err := s.SweepRetired(t.Context(), -1); n != 0 || err != nil {
			t.Errorf("%s: %d swept, %v", c.name, n, err)
		}
	}
}

// TestLongIntents: a file of intents that is no list of calls is damage, not endless work.
func TestLongIntents(t *testing.T) {
	dir := t.TempDir()
	write(t, intentsPath(dir, "r"), strings.Repeat("x", 100<<10)+"\n")
	s := newStore(t, dir)
	_, err := s.Freeze(t.Context(), "r")
	wantErr(t, "freeze", err, ErrDamaged)
	wantProblem(t, dir, "r", "an intent is longer than")
	write(t, intentsPath(dir, "s"), "c1\r\n\n  c2\t\rc3\n\v\n"+strings.Repeat("c4\n", 40_000)+"c5")
	var calls []string
	b := read(t, intentsPath(dir, "s"))
	if err := eachIntent(bytes.NewReader(b), int64(len(b)), func(call string, at int64) error {
		if string(b[at:at+int64(len(call))]) != call {
			t.Errorf("%s is not at %d", call, at)
		}
		if call != "c4" {
			calls = append(calls, call)
		}
		return nil
	}); err != nil || strings.Join(calls, " ") != "c1 c2 c3 c5" {
		t.Errorf("%q, %v", calls, err)
	}
}
