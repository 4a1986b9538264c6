package training

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// TestRefusedEntries: what no reader would take is not written, and says why without quoting it.
func TestRefusedEntries(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	for _, c := range []struct {
		name   string
		change func(*Entry)
		want   string
	}{
		{"no prompt", func(e *Entry) { e.PromptTokenIDs = nil }, "no array"},
		{"a bare list", func(e *Entry) { e.PromptTokenIDs = []byte("1,2") }, "no array"},
		{"an object", func(e *Entry) { e.PromptTokenIDs = []byte("{}") }, "no array"},
		{"a cut prompt", func(e *Entry) { e.PromptTokenIDs = []byte("[1,2") }, "not a list of token ids"},
		{"a negative id", func(e *Entry) { e.GenerationTokenIDs = []byte("[-3]") }, "not a list of token ids"},
		{"an id in words", func(e *Entry) { e.GenerationTokenIDs = []byte(`["3"]`) }, "not a list of token ids"},
		{"something behind the ids", func(e *Entry) { e.GenerationTokenIDs = []byte(`[3] 4`) }, "not a list of token ids"},
		{"too few log probabilities", func(e *Entry) { e.GenerationLogProbs = []byte("[]") }, "1 generated ids and 0 log"},
		{"no log probabilities", func(e *Entry) { e.GenerationLogProbs = nil }, "no array"},
		{"a log probability that is null", func(e *Entry) { e.GenerationLogProbs = []byte("[null]") }, "is no number"},
		{"a log probability that is no JSON", func(e *Entry) { e.GenerationLogProbs = []byte("[NaN]") }, "no array"},
		{"a log probability beyond doubles", func(e *Entry) { e.GenerationLogProbs = []byte("[-1e999]") }, "beyond doubles"},
		{"items that are an object", func(e *Entry) { e.OutputItems = []byte("{}") }, "no array"},
		{"items that are cut", func(e *Entry) { e.OutputItems = []byte("[{}") }, "no JSON"},
		{"an item that is a text", func(e *Entry) { e.OutputItems = []byte(`[{},"x"]`) }, "output item 1 is no object"},
		{"an item with half a character", func(e *Entry) { e.OutputItems = []byte(`[{"content":"\ud83d"}]`) }, "lone surrogate"},
		{"an item with the other half in its name", func(e *Entry) { e.OutputItems = []byte(`[{"\ude00":1}]`) }, "lone surrogate"},
		{"two first halves", func(e *Entry) { e.OutputItems = []byte(`[{"a":"\ud83d\ud83d\ude00"}]`) }, "lone surrogate"},
		{"items that are too deep", func(e *Entry) {
			e.OutputItems = []byte(`[{"a":` + strings.Repeat("[", depthMax) + strings.Repeat("]", depthMax) + "}]")
		}, "containers inside each other"},
		{"a carrier that is not there", func(e *Entry) { e.TokenItem = 1 }, "item 1 of 1"},
		{"a carrier before the first", func(e *Entry) { e.TokenItem = -2 }, "a negative number"},
		{"a negative length", func(e *Entry) { e.CumLen = -1 }, "a negative number"},
		{"no time", func(e *Entry) { e.CreatedAt = math.NaN() }, "created_at"},
		{"the end of time", func(e *Entry) { e.CreatedAt = math.Inf(1) }, "created_at"},
		{"a guess", func(e *Entry) { e.Parent = "guessed" }, "unknown parent resolution"},
		{"resolved to nobody", func(e *Entry) { e.Parent = Resolved }, "resolved without a parent"},
		{"a root with a parent", func(e *Entry) { e.ParentCallID = "c0" }, "root with a parent"},
		{"a delta of nothing", func(e *Entry) { e.PromptIsDelta = true }, "a delta without a resolved parent"},
		{"rolltap that is a list", func(e *Entry) { e.Rolltap = []byte("[]") }, "rolltap is no object"},
		{"rolltap that is no JSON", func(e *Entry) { e.Rolltap = []byte("{") }, "rolltap is no object"},
		{"experts that are no JSON", func(e *Entry) { e.RoutedExperts = []byte("[1,]") }, "no JSON"},
		{"experts twice", func(e *Entry) {
			e.RoutedExperts, e.RoutedExpertsFrom = []byte("[1]"), func(io.Writer) error { return nil }
		}, "experts twice"},
		{"streamed experts that are an object", streamed(`{"a":1}`), "more than arrays"},
		{"streamed experts with a fraction", streamed(`[1.5]`), "more than arrays"},
		{"streamed experts with an escape", streamed(`"\u0041"`), "more than arrays"},
		{"streamed experts that end early", streamed(`[1,2`), "no JSON"},
		{"streamed experts that are nothing", streamed(``), "no JSON"},
		{"streamed experts that fail", func(e *Entry) { e.RoutedExpertsFrom = func(io.Writer) error { return errors.New("no more") } }, "no more"},
	} {
		e := newEntry("r", "c1", "[1,2]", "[3]")
		c.change(e)
		err := s.Put(t.Context(), e)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrEntry) && c.want != "no more" {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if Exists(dir, "r") {
		t.Error("something was written")
	}
	e := newEntry("r", "c1", "[1]", "[2]")
	e.PromptIsDelta = true
	wantErr(t, "the stamp of a delta", e.Stamp(), ErrEntry)
	e = &Entry{PromptTokenIDs: []byte("[1,x]"), GenerationTokenIDs: []byte("[]")}
	wantErr(t, "the stamp of no ids", e.Stamp(), ErrEntry)
}

func streamed(text string) func(*Entry) {
	return func(e *Entry) {
		e.RoutedExpertsFrom = func(w io.Writer) error {
			for len(text) > 0 { // in small pieces
				n := min(7, len(text))
				if _, err := io.WriteString(w, text[:n]); err != nil {
					return err
				}
				text = text[n:]
			}
			return nil
		}
	}
}

// TestLargeEntries: how a value gets into the file, copied, from its place or streamed, makes no difference to what is there.
func TestLargeEntries(t *testing.T) {
	rows := "[" + strings.Repeat("[1,22,333,null],", 5000) + `["abc"]]`
	loose := strings.ReplaceAll(rows, ",[", " ,\n [")
	for _, c := range []struct{ name, prompt, experts, streamed string }{
		{"small", "[1,2]", "[1]", ""},
		{"a large prompt", "[1" + strings.Repeat(",123456", 20_000) + "]", "[1]", ""},
		{"a huge prompt", "[1" + strings.Repeat(",123456", batchMax/7+1) + "]", "[1]", ""},
		{"large experts", "[1,2]", rows, ""},
		{"streamed experts", "[1,2]", rows, rows},
		{"streamed experts with white space", "[1" + strings.Repeat(",123456", 20_000) + "]", rows, loose},
		{"a streamed text", "[1,2]", `"` + strings.Repeat("QUJD", 40_000) + `="`, `"` + strings.Repeat("QUJD", 40_000) + `="`},
	} {
		dir := t.TempDir()
		s := newStore(t, dir)
		e := newEntry("r", "c2", c.prompt, "[3]")
		e.RoutedExperts = []byte(c.experts)
		want := encodeLine(t, e)
		if c.streamed != "" {
			e.RoutedExperts = nil
			e.RoutedExpertsFrom = func(w io.Writer) error {
				for rest := c.streamed; len(rest) > 0; {
					n := min(4099, len(rest))
					if _, err := io.WriteString(w, rest[:n]); err != nil {
						return err
					}
					rest = rest[n:]
				}
				return nil
			}
		}
		first, last := newEntry("r", "c1", "[1]", "[2]"), newEntry("r", "c3", "[1]", "[2]")
		put(t, s, first)
		put(t, s, e)
		put(t, s, e)
		put(t, s, last)
		want = encodeLine(t, first) + want + encodeLine(t, last)
		if got := read(t, dataPath(dir, "r")); string(got) != want {
			t.Errorf("%s: %d bytes, want %d", c.name, len(got), len(want))
		}
		f := freeze(t, s, "r")
		if len(f.views) != 3 || text(t, f.views[1].RoutedExperts, f.File()) != c.experts || text(t, f.views[1].Prompt, f.File()) != c.prompt {
			t.Errorf("%s: read %q", c.name, f.calls)
		}
		noProblems(t, dir, "r")
	}
}

// TestExpertsThatChange between the two times that they are asked for are not written.
func TestExpertsThatChange(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	for _, second := range []string{"[1,3]", "[1,2,3]", "[1", ""} {
		texts := []string{"[1,2]", second, "[1,2]"}
		e := newEntry("r", "c1", "[1]", "[2]")
		e.RoutedExpertsFrom = func(w io.Writer) error {
			_, err := io.WriteString(w, texts[0])
			texts = texts[1:]
			return err
		}
		wantErr(t, second, s.Put(t.Context(), e), ErrEntry)
	}
	put(t, s, newEntry("r", "c2", "[1]", "[2]"))
	if f := freeze(t, s, "r"); len(f.calls) != 1 || f.calls[0] != "c2" {
		t.Errorf("%q", f.calls)
	}
	noProblems(t, dir, "r")
	if raceDetector {
		return // 256 MiB
	}
	tooLong := newEntry("s", "c1", "[1]", "[2]")
	piece := bytes.Repeat([]byte("QUJD"), 1<<20)
	tooLong.RoutedExpertsFrom = func(w io.Writer) error {
		_, err := io.WriteString(w, `"`)
		for n := 0; n < MaxLine && err == nil; n += len(piece) {
			_, err = w.Write(piece)
		}
		if err == nil {
			_, err = io.WriteString(w, `"`)
		}
		return err
	}
	wantErr(t, "a line that nobody would read", s.Put(t.Context(), tooLong), ErrEntry)
}

// TestPlainDouble: what passes unread is what would be written.
func TestPlainDouble(t *testing.T) {
	for text, want := range map[string]bool{
		"-0.5": true, "-12.25": true, "0.001": true, "0.0": true, "-0.0": true, "0.00012": false, "1": false, "1e5": false, "1.50": false, ".5": false, "1.": false,
		"-1.12345678901234": true, "-1.123456789012345": false, "123456789012345.5": false,
	} {
		if got := plainDouble([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
		if !want {
			continue
		}
		if out, err := appendDouble(nil, []byte(text)); err != nil || string(out) != text {
			t.Errorf("%s becomes %s, %v", text, out, err)
		}
	}
}
