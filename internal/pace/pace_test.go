package pace

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// gogc is the percentage that holds now.
func gogc() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// collected lets collections run until the percentage is as wanted, and returns it.
func collected(want func(int) bool) int {
	for range 500 {
		if runtime.GC(); want(gogc()) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return gogc()
}

func TestCollectionsFollowWhatIsLive(t *testing.T) {
	before := gogc()
	end := Start(nil)
	if got := collected(func(p int) bool { return p > 100 }); got <= 100 {
		t.Errorf("with little on the heap the percentage is %d, want more than 100", got)
	}
	live := make([]byte, 2*heapRoom)
	if got := collected(func(p int) bool { return p == 100 }); got != 100 {
		t.Errorf("with %d MiB on the heap the percentage is %d, want 100", len(live)>>20, got)
	}
	runtime.KeepAlive(live)
	if got := collected(func(p int) bool { return p > 100 }); got <= 100 {
		t.Errorf("when they are gone the percentage is %d, want more than 100", got)
	}
	end()
	for range 3 {
		runtime.GC()
	}
	if got := gogc(); got != before {
		t.Errorf("behind the end the percentage is %d, want %d as before", got, before)
	}
}

func TestGOGCIsLeftAlone(t *testing.T) {
	before := gogc()
	defer Start([]string{"GOGC=50"})()
	for range 20 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := gogc(); got != before {
		t.Errorf("GOGC is set, but the percentage went from %d to %d", before, got)
	}
}

func TestPercentFor(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 800}, {1 << 20, 800}, {4 << 20, 400}, {7 << 20, 225}, {heapRoom, 100}, {1 << 40, 100},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("%d bytes live: got %d, want %d", c.live, got, c.want)
		}
	}
}
