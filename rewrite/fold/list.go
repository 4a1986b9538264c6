package fold

import (
	"cmp"
	"slices"
)

// MaxEntries bounds a List: far above what any engine numbers, low enough that a stream of nothing but new indices stays cheap.
const MaxEntries = 1 << 14

// List holds things by an index that the other side chose: any integer, in any order. The zero List is empty; one goroutine at a time.
type List[T any] struct {
	entries []entry[T] // in order of arrival
	at      map[int64]int
	last    int   // where the last index was found: the next one is mostly the same
	next    int64 // behind the highest index
}

type entry[T any] struct {
	index int64
	item  *T
}

// At is the entry of an index, made when it is new. It is nil when the list is full.
func (l *List[T]) At(index int64) *T {
	if l.last < len(l.entries) && l.entries[l.last].index == index {
		return l.entries[l.last].item
	}
	if i, ok := l.at[index]; ok {
		l.last = i
		return l.entries[i].item
	}
	if len(l.entries) >= MaxEntries {
		return nil
	}
	if l.at == nil {
		l.at = make(map[int64]int)
	}
	l.last = len(l.entries)
	l.at[index] = l.last
	l.next = max(l.next, index+1)
	l.entries = append(l.entries, entry[T]{index, new(T)})
	return l.entries[l.last].item
}

// Next is the index behind the highest one.
func (l *List[T]) Next() int64 { return l.next }

// Last is the index that was asked for last, 0 when none was.
func (l *List[T]) Last() int64 {
	if l.last < len(l.entries) {
		return l.entries[l.last].index
	}
	return 0
}

// Len is the number of entries.
func (l *List[T]) Len() int { return len(l.entries) }

// entrySize is about what an entry takes beside its item.
const entrySize = 64

// Size is about how much memory the list takes, in bytes; size tells that of an entry.
func (l *List[T]) Size(size func(*T) int) int {
	n := 0
	for i := range l.entries {
		n += entrySize + size(l.entries[i].item)
	}
	return n
}

// Sorted yields index and entry by rising index.
func (l *List[T]) Sorted(yield func(int64, *T) bool) {
	sorted := l.entries
	byIndex := func(a, b entry[T]) int { return cmp.Compare(a.index, b.index) }
	if !slices.IsSortedFunc(sorted, byIndex) {
		sorted = slices.SortedFunc(slices.Values(sorted), byIndex)
	}
	for _, e := range sorted {
		if !yield(e.index, e.item) {
			return
		}
	}
}

// Append appends the entries as a JSON array, in order of their indices.
func (l *List[T]) Append(dst []byte, write func(entry *T, dst []byte) []byte) []byte {
	dst = append(dst, '[')
	first := true
	for _, e := range l.Sorted {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = write(e, dst)
	}
	return append(dst, ']')
}
