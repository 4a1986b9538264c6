package cli

import (
	"hash/maphash"
	"strings"

	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// remembered is how many conversations a new request is compared with: a harness with sub-agents has several going.
const remembered = 16

// conversation is what a call left behind: its request and its answer as hashes, to find what the next one repeats.
type conversation struct {
	number int
	at     map[uint64][]int // where in the conversation an item of this hash stands
}

// hash is what an item is compared by. Reasoning is not compared, since most harnesses do not send it back, nor are the
// ids of calls, and white space at the ends is no difference.
func (t *transcript) hash(it trajectory.Item) uint64 {
	s := strings.TrimSpace(it.Text)
	if it.Kind == trajectory.Called {
		var c jsonx.Compactor
		if tight, err := c.Append(nil, []byte(s)); err == nil {
			if _, err := c.Finish(); err == nil {
				s = string(tight)
			}
		}
	}
	name := it.Name
	if it.Kind == trajectory.Returned {
		name = "" // Chat names the tool in some harnesses and some turns only
	}
	return maphash.Comparable(t.seed, struct {
		k             trajectory.Kind
		role, name, s string
	}{it.Kind, it.Role, name, s})
}

// fresh is the items that none of the remembered conversations has in this order, and the call that this one goes on
// after where that is not the last one.
func (t *transcript) fresh(items []trajectory.Item) (news []trajectory.Item, after int) {
	hashes := make([]uint64, len(items))
	for i, it := range items {
		hashes[i] = t.hash(it)
	}
	var best []bool
	most, talk := 0, 0
	for i := len(t.past) - 1; i >= 0; i-- {
		old, n, spoken := t.past[i].match(items, hashes)
		if n > most {
			best, most, talk, after = old, n, spoken, t.past[i].number
		}
	}
	if talk == 0 || after == t.past[len(t.past)-1].number {
		after = 0
	}
	old := false // reasoning is as new as what it led to
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind != trajectory.Thought {
			old = best != nil && best[i]
		}
		if !old {
			news = append(news, items[i])
		}
	}
	for i, j := 0, len(news)-1; i < j; i, j = i+1, j-1 {
		news[i], news[j] = news[j], news[i]
	}
	return news, after
}

// match marks the items that the conversation has in this order, and counts them, all and without the system's.
func (c *conversation) match(items []trajectory.Item, hashes []uint64) (old []bool, n, spoken int) {
	old = make([]bool, len(items))
	next := 0
	for i, it := range items {
		if it.Kind == trajectory.Thought {
			continue
		}
		for _, at := range c.at[hashes[i]] {
			if at < next {
				continue
			}
			old[i], next = true, at+1
			n++
			if it.Role != "system" {
				spoken++
			}
			break
		}
	}
	return old, n, spoken
}

func (t *transcript) remember(number int, items []trajectory.Item) {
	c := conversation{number: number, at: map[uint64][]int{}}
	for i, it := range items {
		if it.Kind != trajectory.Thought {
			h := t.hash(it)
			c.at[h] = append(c.at[h], i)
		}
	}
	if len(t.past) == remembered {
		t.past = append(t.past[:0], t.past[1:]...)
	}
	t.past = append(t.past, c)
}
