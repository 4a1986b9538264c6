package proxy

import (
	"bytes"
	"container/list"
	"sync"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

const (
	memoryBytes = 16 << 20 // that all remembered items hold together
	memoryItem  = 1 << 20  // longer ones are not remembered
)

// memory holds items of answers that Responses clients were given, since some send only the id of an item in their next call
// (harness.md 2.16). The longest unused ones are forgotten first.
type memory struct {
	mu    sync.Mutex // guards the rest
	items map[memoryKey]*list.Element
	used  list.List // of memoryEntry, least recently used first
	bytes int
}

type memoryKey struct{ rollout, item string }

type memoryEntry struct {
	key memoryKey
	raw []byte
}

// keep remembers the reasoning and the messages of an answer.
func (m *memory) keep(rollout string, response []byte) {
	for it := jsonx.Array(jsonx.Get(response, "output")); it.Next(); {
		id, ok := jsonx.Text(jsonx.Get(it.Value(), "id"))
		if kind, _ := jsonx.Text(jsonx.Get(it.Value(), "type")); !ok || kind != "reasoning" && kind != "message" || len(it.Value()) > memoryItem {
			continue
		}
		m.put(memoryEntry{memoryKey{rollout, id}, bytes.Clone(it.Value())})
	}
}

func (m *memory) put(e memoryEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[memoryKey]*list.Element{}
	}
	if old, ok := m.items[e.key]; ok {
		m.forget(old)
	}
	m.items[e.key] = m.used.PushBack(e)
	for m.bytes += len(e.raw); m.bytes > memoryBytes; {
		m.forget(m.used.Front())
	}
}

// forget is called with mu held.
func (m *memory) forget(e *list.Element) {
	entry := m.used.Remove(e).(memoryEntry)
	delete(m.items, entry.key)
	m.bytes -= len(entry.raw)
}

// recall gives an item back as the part of a conversation that it is.
func (m *memory) recall(rollout, id string) (canon.Part, bool) {
	m.mu.Lock()
	e, ok := m.items[memoryKey{rollout, id}]
	var raw []byte
	if ok {
		m.used.MoveToBack(e)
		raw = e.Value.(memoryEntry).raw // never written to
	}
	m.mu.Unlock()
	if !ok {
		return canon.Part{}, false
	}
	return rewrite.ReadItem(raw)
}
