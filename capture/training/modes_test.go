package training

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every file has the mode that was asked for, and the folder the one that goes with it, whatever the umask, which takes the group's write bit.
func TestModesOfFiles(t *testing.T) {
	for mode, want := range map[fs.FileMode]struct{ file, folder fs.FileMode }{0: {0o640, 0o750}, 0o600: {0o600, 0o700}, 0o660: {0o660, 0o770}} {
		dir := filepath.Join(t.TempDir(), "store")
		s := newStore(t, dir, func(o *Options) { o.Mode = mode })
		if err := os.Remove(dir); err != nil { // it is made anew
			t.Fatal(err)
		}
		begin(t, s, "r", "a")
		put(t, s, newEntry("r", "a", "[1,2]", "[3]"))
		if err := s.Mark(t.Context(), "r", "b", "no_token_ids"); err != nil {
			t.Fatal(err)
		}
		freeze(t, s, "r")
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 5 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, f := range files {
			st, err := f.Info()
			if err != nil || st.Mode() != want.file {
				t.Errorf("%s has the mode %s, %v, want %s", f.Name(), st.Mode(), err, want.file)
			}
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != want.folder {
			t.Errorf("the folder has the mode %s, %v, want %s", st.Mode(), err, want.folder)
		}
	}
}

// A link in the place of any file is not followed: nothing is written, nor made, where it leads.
func TestFilesThatAreLinks(t *testing.T) {
	for _, suffix := range []string{dataSuffix, intentsSuffix, markerSuffix, lockSuffix} {
		for _, there := range []bool{true, false} {
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if there {
				if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(victim, filepath.Join(dir, "r"+suffix)); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, dir)
			err := s.Begin(t.Context(), "r", "a")
			if e := s.Put(t.Context(), newEntry("r", "a", "[1,2]", "[3]")); err == nil {
				err = e
			}
			if e := s.Mark(t.Context(), "r", "b", "no_token_ids"); err == nil {
				err = e
			}
			if err == nil {
				t.Errorf("%s: nobody has said anything", suffix)
			}
			text, err := os.ReadFile(victim)
			if (err == nil) != there || there && string(text) != "precious" {
				t.Errorf("%s: outside there is %q, %v", suffix, text, err)
			}
		}
	}
}

func TestHeld(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	held := func(want bool, when string) {
		t.Helper()
		if got := Held(dir, "r"); got != want {
			t.Errorf("%s: held %v", when, got)
		}
	}
	held(false, "nothing is there")
	begin(t, s, "r", "a")
	held(true, "a call has begun")
	put(t, s, newEntry("r", "a", "[1,2]", "[3]"))
	f := freeze(t, s, "r")
	held(true, "frozen")
	if dropped, err := s.Drop(t.Context(), "r", f.ID, f.Version); !dropped || err != nil {
		t.Fatal(dropped, err)
	}
	held(false, "dropped")
	if !Exists(dir, "r") || Held(dir, strings.Repeat("a", 201)) {
		t.Error("the state is gone, or a name that is none has tokens")
	}
}
