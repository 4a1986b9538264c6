package pace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
)

// heapRoom is how much the heap may grow between two collections at least. The standard is as much as is live, and of a sidecar
// under small calls that is so little that a tenth of its time went into collections.
const heapRoom = 16 << 20

// pace is the garbage collector's GOGC while the sidecar serves: with much on the heap it is the standard 100, with little it is
// what makes heapRoom. It looks once behind each collection, when what is live is known.
type pace struct {
	mu      sync.Mutex // guards the rest
	percent int        // that holds
	before  int        // that held before
	over    bool
}

// Start begins to pace the collector, unless environ sets GOGC. The returned func ends that.
func Start(environ []string) (end func()) {
	if slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "GOGC=") }) {
		return func() {}
	}
	c := &pace{percent: 100, before: debug.SetGCPercent(100)}
	c.await()
	return c.end
}

// await lets look run behind the next collection, which finds that nobody holds the mark.
func (c *pace) await() {
	mark := new([2]*pace)
	runtime.AddCleanup(mark, (*pace).look, c)
}

func (c *pace) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.await()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindUint64 {
		c.set(percentFor(sample[0].Value.Uint64()))
	}
}

// percentFor is how much the heap may grow, in percent of what is live, in coarse steps: each change stops the world for a moment.
func percentFor(live uint64) int {
	percent := int(100 * heapRoom / max(live, heapRoom/8))
	return max(100, percent/25*25)
}

// set is called with mu held.
func (c *pace) set(percent int) {
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

func (c *pace) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.set(c.before)
}
