package capture

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rolltap/capture/training"
)

// BenchmarkTokenCall is what makes a call under token capture durable, 64 at a time, each its own rollout: an intent, then a record and an
// entry side by side. "apart" is a journal for the records and syncs of their own for the token files.
//
//	go test ./capture -run - -bench TokenCall -benchtime 3000x
//
// fsync/op counts syncs of files and of the journal, cpu-µs/op is user and system time of the process.
func BenchmarkTokenCall(b *testing.B) {
	const calls = 64
	for _, name := range []string{"journal", "apart", "file"} {
		b.Run(name, func(b *testing.B) {
			var fsyncs atomic.Int64
			mode := DurabilityJournal
			if name == "file" {
				mode = DurabilityFile
			}
			s := newStore(b, Options{Durability: mode, Observe: Observe{Fsync: func(time.Duration) { fsyncs.Add(1) }}})
			var tokens *training.Store
			if name == "apart" {
				var err error
				tokens, err = training.Open(training.Options{Dir: s.o.Dir, Observe: training.Observe{Sync: func(time.Duration) { fsyncs.Add(1) }}})
				if err != nil {
					b.Fatal(err)
				}
			} else {
				tokens = tokensIn(b, s, training.Options{}, nil)
			}
			call := func(id string) {
				c := callID()
				if err := tokens.Begin(b.Context(), id, c); err != nil {
					b.Error(err)
				}
				var both sync.WaitGroup
				both.Go(func() {
					if err := tokens.Put(b.Context(), tokenEntry(b, id, c, 500)); err != nil {
						b.Error(err)
					}
				})
				if err := s.Append(b.Context(), record(id, c, `{"text":"hello"}`)); err != nil {
					b.Error(err)
				}
				both.Wait()
			}
			each := func(n int) {
				var next atomic.Int64
				var wg sync.WaitGroup
				for w := range calls {
					wg.Go(func() {
						for next.Add(1) <= int64(n) {
							call(fmt.Sprint("r-", w))
						}
					})
				}
				wg.Wait()
			}
			each(4 * calls) // the files are there
			fsyncs.Store(0)
			before := cpu()
			b.ResetTimer()
			each(b.N)
			b.StopTimer()
			b.ReportMetric(float64(fsyncs.Load())/float64(b.N), "fsync/op")
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			if err := tokens.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
