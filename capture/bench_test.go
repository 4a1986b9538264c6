package capture

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAppend is one durable record of 8 KiB by so many writers, over as many rollouts or all on one. Compare with
//
//	go test -run - -bench Append -count 10 ./capture | benchstat -
//
// cpu-µs/op is user and system time of the process.
func BenchmarkAppend(b *testing.B) {
	request := `{"text":"` + strings.Repeat("0123456789abcde ", 512) + `"}`
	for _, many := range []bool{true, false} {
		for _, writers := range []int{1, 16, 64, 256} {
			name := fmt.Sprintf("one-rollout/writers=%d", writers)
			if many {
				name = fmt.Sprintf("rollouts=%d/writers=%d", writers, writers)
			}
			b.Run(name, func(b *testing.B) {
				var fsyncs atomic.Int64
				s := newStore(b, Options{Observe: Observe{Fsync: func(time.Duration) { fsyncs.Add(1) }}})
				var next atomic.Int64
				before := cpu()
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for w := range writers {
					id := "r"
					if many {
						id = fmt.Sprint("r-", w)
					}
					wg.Go(func() {
						for next.Add(1) <= int64(b.N) {
							if err := s.Append(b.Context(), record(id, callID(), request)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(fsyncs.Load())/float64(b.N), "fsync/op")
				b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEncode is the part of a record of 8 KiB that runs in the caller's goroutine, without the disk.
func BenchmarkEncode(b *testing.B) {
	request := `{"text":"` + strings.Repeat("0123456789abcde ", 512) + `"}`
	b.ReportAllocs()
	var lines memoryPool
	for b.Loop() {
		l, err := encode(record("r", "c", request), &lines, nil)
		if err != nil {
			b.Fatal(err)
		}
		lines.put(l.buf, pooledBuf)
	}
}
