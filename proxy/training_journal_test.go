package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/zap"

	"rolltap/capture"
)

// TestTokensRestOnTheJournal: under load intents, and entries, are in the journal that the records are in.
func TestTokensRestOnTheJournal(t *testing.T) {
	dir := t.TempDir()
	store, err := capture.Open(capture.Options{Dir: dir, Durability: capture.DurabilityJournal})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := newTraining(&Config{Store: dir, TokenCapture: tokenCaptureAuto}, store, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := 0; i < 50 && found == 0; i++ { // the files have to be there first
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				if err := tokens.Begin(t.Context(), fmt.Sprint("r-", w), fmt.Sprint("call-", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		names, err := filepath.Glob(filepath.Join(dir, ".journal", "*", "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			found += bytes.Count(b, []byte("/intents"))
		}
	}
	if err := errors.Join(tokens.Close(t.Context()), store.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".journal", "*")); found == 0 && runtime.GOOS == "linux" || len(left) > 0 {
		t.Errorf("%d entries in the journal; left is %q", found, left)
	}
}
