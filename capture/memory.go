package capture

import (
	"math/bits"
	"sync"
)

// memoryPool keeps memory that was used, by its size, so that the next who needs as much gets it without having it cleared.
// The garbage collector empties it when nobody comes. The zero value is ready.
type memoryPool struct {
	used [memoryClasses]sync.Pool // of *[]byte with a capacity of memoryFrom << class or more
}

const (
	memoryFrom    = 1 << 10
	memoryClasses = 12 // up to 2 MiB
)

// get returns memory for at least size bytes.
func (p *memoryPool) get(size int) []byte {
	class := bits.Len(uint(max(size-1, 0) / memoryFrom))
	if class >= memoryClasses {
		return make([]byte, 0, size)
	}
	if m, ok := p.used[class].Get().(*[]byte); ok {
		return (*m)[:0]
	}
	return make([]byte, 0, memoryFrom<<class)
}

// put takes memory that nobody looks at any more, unless there is more of it than most.
func (p *memoryPool) put(mem []byte, most int) {
	class := bits.Len(uint(cap(mem)/memoryFrom)) - 1
	if class < 0 || cap(mem) > most {
		return
	}
	p.used[min(class, memoryClasses-1)].Put(&mem)
}
