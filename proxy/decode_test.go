package proxy

import (
	"bytes"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

type flusher interface {
	io.WriteCloser
	Flush() error
}

func encoder(t *testing.T, coding string, w io.Writer) flusher {
	t.Helper()
	switch coding {
	case "gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	}
	e, err := zstd.NewWriter(w)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// encoded is a stream with a flush behind each event.
func encoded(t *testing.T, coding string, events []string) [][]byte {
	t.Helper()
	var b bytes.Buffer
	e := encoder(t, coding, &b)
	var chunks [][]byte
	for i, ev := range events {
		io.WriteString(e, ev)
		if i == len(events)-1 {
			e.Close()
		} else {
			e.Flush()
		}
		chunks = append(chunks, bytes.Clone(b.Bytes()))
		b.Reset()
	}
	return chunks
}

func codedBench(t *testing.T, d canon.Dialect, coding string, chunks [][]byte) *bench {
	b := newBench(t, d, true, -1, chunks)
	b.g.stream = nil
	b.x.coding = coding
	b.g.decoded = newInflater(coding, b.x.observer, b.x.decodedChunk)
	return b
}

func TestEncodedStreamFlowsAndEndsAfterTheCommit(t *testing.T) {
	for _, coding := range []string{"gzip", "zstd", "deflate"} {
		for d, events := range streams() {
			chunks := encoded(t, coding, events)
			whole := bytes.Join(chunks, nil)
			b := codedBench(t, d, coding, chunks)
			record := b.recorded()
			last := len(whole) - len(chunks[len(chunks)-1])
			b.starved = func(b *bench) {
				if len(b.chunks) == 1 && len(b.chunks[0]) == len(whole)-last && b.client.Len() < last {
					t.Errorf("%s, %s: %d bytes are with the client when the terminal event is waited for, want %d", coding, d, b.client.Len(), last)
				}
			}
			if err := b.drain(func() {
				if !b.x.settled && b.client.Len() > last {
					t.Errorf("%s, %s: the chunk with the terminal event passed before the commit", coding, d)
				}
			}); err != io.EOF || !bytes.Equal(b.client.Bytes(), whole) {
				t.Errorf("%s, %s: ended with %v after %d bytes, want %d", coding, d, err, b.client.Len(), len(whole))
			}
			if line := record(); b.x.ending.outcome != outcomeOK || !strings.Contains(line, `"response":{`) {
				t.Errorf("%s, %s: got %+v, recorded %s", coding, d, b.x.ending, line)
			}
		}
	}
}

func TestGzipWithoutFlushesHoldsUntilItIsCertain(t *testing.T) {
	events := streams()[canon.Chat]
	whole := encoded(t, "gzip", []string{strings.Join(events, "")})[0]
	var chunks [][]byte
	for i := range whole {
		chunks = append(chunks, whole[i:i+1])
	}
	b := codedBench(t, canon.Chat, "gzip", chunks)
	if err := b.drain(func() {
		if !b.x.settled && b.client.Len() > 0 {
			t.Fatal("bytes of a block that may hold the terminal event passed before the commit")
		}
	}); err != io.EOF || !bytes.Equal(b.client.Bytes(), whole) {
		t.Errorf("ended with %v after %d bytes, want %d", err, b.client.Len(), len(whole))
	}
}

func TestUndecodableStreamHoldsOneReadBack(t *testing.T) {
	for _, coding := range []string{"gzip", "zstd", "br", "deflate"} {
		chunks := [][]byte{[]byte("no such"), []byte(" coding"), []byte(" at all")}
		b := codedBench(t, canon.Chat, coding, chunks)
		before := 0
		if err := b.drain(func() {
			if !b.x.settled {
				before = b.client.Len()
			}
		}); err != io.EOF || b.client.String() != "no such coding at all" {
			t.Errorf("%s: ended with %v after %q", coding, err, b.client.String())
		}
		if before > len("no such coding") {
			t.Errorf("%s: the last read passed before the commit", coding)
		}
	}
}

func TestCopiesAreDecodedWithinBounds(t *testing.T) {
	plain := `{"a":"` + strings.Repeat("b", 100_000) + `"}`
	for _, coding := range []string{"gzip", "zstd", "deflate"} {
		var b bytes.Buffer
		e := encoder(t, coding, &b)
		io.WriteString(e, plain)
		e.Close()
		for _, most := range []int64{1 << 20, 1000} {
			o := capture.CopyOptions{Max: most}
			c := capture.NewCopy(o)
			c.Write(b.Bytes())
			got := decodeCopy(c, coding, o)
			if most > int64(len(plain)) != got.IsObject() {
				t.Errorf("%s, at most %d bytes: object %t", coding, most, got.IsObject())
			}
			if got.Truncated() == (most > int64(len(plain))) || got.Len() > most {
				t.Errorf("%s, at most %d bytes: truncated %t, %d bytes", coding, most, got.Truncated(), got.Len())
			}
			got.Release()
		}
	}
	for _, coding := range []string{"br", "gzip, zstd", "gzip", "zstd"} {
		c := capture.NewCopy(capture.CopyOptions{})
		c.Write([]byte("plain text"))
		if got := decodeCopy(c, coding, capture.CopyOptions{}); got != c {
			t.Errorf("%s: what cannot be decoded is not kept as it was", coding)
		}
		c.Release()
	}
}

func TestInflaterEndsWithItsGate(t *testing.T) {
	o := rewrite.NewObserver(rewrite.DialectOf(canon.Chat), 1<<20)
	f := newInflater("gzip", o, func([]byte, rewrite.Progress) {})
	f.push([]byte{0x1f})
	f.close()
	f.close()
}
