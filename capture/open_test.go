package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outside makes a file beside the store, with a content that nobody may change.
func outside(t *testing.T) (path string, untouched func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != "precious\n" {
			t.Errorf("the file outside of the store is %q now, %v", b, err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("the file outside of the store has the mode %v now, %v", st.Mode(), err)
		}
	}
}

// What stands under the name of a data file and is none gets no record: the record is lost and said to be, by the error, the
// count, the report and the mark.
func TestDataFileThatIsNone(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(path, outside string) error
	}{
		{"a link to a file", func(path, outside string) error { return os.Symlink(outside, path) }},
		{"a link to nothing", func(path, outside string) error { return os.Symlink(outside+".none", path) }},
		{"a folder", func(path, _ string) error { return os.Mkdir(path, 0o700) }},
		{"a pipe", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }},
		{"a socket", func(path, _ string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) }},
	} {
		for _, durability := range []Durability{DurabilityFile, DurabilityJournal, DurabilityAsync} {
			t.Run(row.name+"/"+string(durability), func(t *testing.T) {
				t.Parallel()
				victim, untouched := outside(t)
				var seen tally
				s := newStore(t, Options{Durability: durability, Observe: seen.observe()})
				if err := row.plant(dataPath(s.o.Dir, "r"), victim); err != nil {
					t.Fatal(err)
				}
				if err := s.Append(t.Context(), record("r", callID(), `{}`)); !errors.Is(err, ErrNoRegularFile) {
					t.Errorf("append said %v", err)
				}
				if n := seen.result(ResultLost); n != 1 {
					t.Errorf("%d records were counted as lost", n)
				}
				soon(t, "marked", func() bool { return Marked(s.o.Dir, "r") })
				untouched()
				if _, err := os.Lstat(victim + ".none"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a file was made outside of the store: %v", err)
				}
				if err := s.Append(t.Context(), record("other", callID(), `{}`)); err != nil {
					t.Errorf("another rollout suffers: %v", err)
				}
				if _, err := OpenLines(s.o.Dir, "r"); !errors.Is(err, ErrNoRegularFile) {
					t.Errorf("a reader said %v", err)
				}
				if _, err := ResumeLines(s.o.Dir, "r", Cursor{}); !errors.Is(err, ErrNoRegularFile) {
					t.Errorf("a reader that stays said %v", err)
				}
				if _, err := Stat(s.o.Dir, "r"); !errors.Is(err, ErrNoRegularFile) {
					t.Errorf("a look at it said %v", err)
				}
				if err := Clear(t.Context(), s.o.Dir, "r"); !errors.Is(err, ErrNoRegularFile) {
					t.Errorf("clear said %v", err)
				}
			})
		}
	}
}

// A data file that becomes a link to itself while it is in use is not written to any more.
func TestDataFileThatBecomesALink(t *testing.T) {
	s := newStore(t, Options{})
	path := dataPath(s.o.Dir, "r")
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Skip("the temporary folders are on two file systems")
	}
	if err := os.Symlink(moved, path); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(moved)
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); !errors.Is(err, ErrNoRegularFile) {
		t.Errorf("append said %v", err)
	}
	if after, _ := os.ReadFile(moved); string(after) != string(before) {
		t.Errorf("written through the link:\n%s", after)
	}
}

func TestMarkerThatIsALink(t *testing.T) {
	victim, untouched := outside(t)
	var seen tally
	s, err := Open(Options{Dir: t.TempDir(), Observe: seen.observe()})
	if err != nil {
		t.Fatal(err)
	}
	for id, to := range map[string]string{"r": victim, "none": victim + ".none"} {
		if err := os.Symlink(to, markerPath(s.o.Dir, id)); err != nil {
			t.Fatal(err)
		}
		s.Mark(id, "c", "test", errors.New("why"))
	}
	if err := syscall.Mkfifo(markerPath(s.o.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Mark("pipe", "c", "test", errors.New("why"))
	s.Mark("sound", "c", "test", errors.New("why"))
	soon(t, "the sound one is marked", func() bool { return Marked(s.o.Dir, "sound") })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "3 rollouts could not be marked") {
		t.Errorf("close said %v", err)
	}
	untouched()
	if _, err := os.Lstat(victim + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made outside of the store: %v", err)
	}
}

func TestRepairThroughLinks(t *testing.T) {
	for _, name := range []string{"r" + damagedSuffix, ".r.repair"} {
		t.Run(name, func(t *testing.T) {
			victim, untouched := outside(t)
			dir := t.TempDir()
			if err := os.WriteFile(dataPath(dir, "r"), []byte("damaged\n"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if _, err := Repair(t.Context(), dir, nil); !errors.Is(err, ErrNoRegularFile) {
				t.Errorf("repair said %v", err)
			}
			untouched()
			if b, _ := os.ReadFile(dataPath(dir, "r")); string(b) != "damaged\n" {
				t.Errorf("the data file is %q now", b)
			}
		})
	}
}

// A store whose folder for journals leads elsewhere makes no journal there and replays none.
func TestJournalThatIsALink(t *testing.T) {
	elsewhere := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, journalDir)); err != nil {
		t.Fatal(err)
	}
	if err := Replay(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("the replay said %v", err)
	}
	j := newJournal(journalOptions{dir: dir, writer: "w"})
	err := j.commitOne(t)
	if err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("the journal said %v", err)
	}
	if es, _ := os.ReadDir(elsewhere); len(es) != 0 {
		t.Errorf("made elsewhere: %v", es)
	}
}

// commitOne commits one entry and closes the journal.
func (j *journal) commitOne(t *testing.T) error {
	t.Helper()
	ref, err := j.commit(&journalEntry{name: "r", file: fileID{dev: 1, ino: 1, birth: 1}, lines: 1, data: []byte("{}\n")})
	if err == nil {
		ref.forsaken()
	}
	if err := j.close(t.Context()); err != nil {
		t.Error(err)
	}
	return err
}

func TestSegmentThatIsALink(t *testing.T) {
	victim, untouched := outside(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, journalDir, "w1")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(folder, "00000001"+segmentSuffix)); err != nil {
		t.Fatal(err)
	}
	if err := Replay(t.Context(), dir, nil); !errors.Is(err, ErrNoRegularFile) {
		t.Errorf("the replay said %v", err)
	}
	untouched()
}

func TestProbeThroughALink(t *testing.T) {
	victim, untouched := outside(t)
	dir := t.TempDir()
	if err := os.Symlink(victim, filepath.Join(dir, ".probe")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrNoRegularFile) {
		t.Errorf("open said %v", err)
	}
	untouched()
}

// The umask belongs to the process, so each is tried in one of its own.
func TestModesUnderAnyUmask(t *testing.T) {
	for _, umask := range []string{"0", "0077", "0777", "0027"} {
		for mode, folder := range map[string]string{"0": "0750", "0600": "0700", "0660": "0770", "0644": "0755"} {
			t.Run(umask+"/"+mode, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "a", "b")
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "CAPTURE_UMASK="+umask, "CAPTURE_MODE="+mode, "CAPTURE_UMASK_DIR="+dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				file := mode
				if mode == "0" {
					file = "0640"
				}
				for name, want := range map[string]string{
					"..": folder, ".": folder, "r" + dataSuffix: file, "r" + markerSuffix: file, journalDir: folder, journalDir + "/w": folder,
					journalDir + "/w/" + journalLock: file, journalDir + "/w/00000001" + segmentSuffix: file,
				} {
					st, err := os.Stat(filepath.Join(dir, name))
					if err != nil || "0"+strconv.FormatUint(uint64(st.Mode().Perm()), 8) != want {
						t.Errorf("%s has the mode %v, want %s (%v)", name, st.Mode(), want, err)
					}
				}
			})
		}
	}
}

// underUmask is the process of TestModesUnderAnyUmask. It dies with a journal's entry that nobody has applied, so the journal
// is left.
func underUmask(dir string) {
	umask, _ := strconv.ParseUint(os.Getenv("CAPTURE_UMASK"), 8, 32)
	mode, _ := strconv.ParseUint(os.Getenv("CAPTURE_MODE"), 8, 32)
	syscall.Umask(int(umask))
	ctx := context.Background()
	s, err := Open(Options{Dir: dir, Mode: fs.FileMode(mode)})
	if err == nil {
		err = s.Append(ctx, record("r", callID(), `{}`))
		s.Mark("r", "c", "test", errors.New("why"))
		err = errors.Join(err, s.Close(ctx))
	}
	j := newJournal(journalOptions{dir: dir, writer: "w", mode: fs.FileMode(mode)})
	if _, e := j.commit(&journalEntry{name: "r", file: fileID{dev: 1, ino: 1, birth: 1}, lines: 1, data: []byte("{}\n")}); err != nil || e != nil {
		fmt.Fprintln(os.Stderr, err, e)
		os.Exit(1)
	}
}

func TestValidMode(t *testing.T) {
	for mode, want := range map[fs.FileMode]bool{0o640: true, 0o600: true, 0o660: true, 0o644: true, 0o664: true, 0: false, 0o400: false, 0o755: false, 0o666: false, 0o1640: false} {
		if ValidMode(mode) != want {
			t.Errorf("%04o: %v", mode, !want)
		}
	}
	if _, err := Open(Options{Dir: t.TempDir(), Mode: 0o777}); err == nil {
		t.Error("a store with executable files was opened")
	}
}
