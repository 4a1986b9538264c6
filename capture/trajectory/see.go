package trajectory

import (
	"slices"
	"strings"
)

// instructionMin is from which length on a text in one message with the results of tools may ask for a summary. Remarks of people are
// shorter, and reminders stand in tags.
const instructionMin = 128

// see looks at what a request brings: results of tools, and the words of earlier answers.
func (b *builder) see(n *Call, at int) {
	b.news = b.news[:0]
	last := 0 // where the last element begins
	for _, e := range b.elements[n.New:] {
		last = len(b.news)
		b.news = e.items(b.news)
	}
	if k := len(b.news); k-last > 1 {
		end := b.news[k-1]
		n.doubtful = b.news[k-2].Kind == Returned && end.Kind == Said && end.Role == "user" && len(end.Text) >= instructionMin && !strings.HasPrefix(end.Text, "<")
	}
	for _, it := range b.news {
		switch {
		case it.Kind == Returned:
			b.result(n, at, it)
			b.report(n, at, it.Text)
		case it.Kind == Said && it.Role == "user" && n.Parent < 0:
			b.summary(n, at, it.Text)
			b.spawn(n, at, it.Text)
		case it.Kind == Said && it.Role == "user" && n.opens:
			b.summary(n, at, it.Text)
		}
	}
	if n.opens { // the summary stands in front of what was kept
		for _, e := range b.elements[:n.New] {
			for _, it := range e.items(nil) {
				if it.Kind == Said && it.Role == "user" {
					b.summary(n, at, it.Text)
				}
			}
		}
	}
}

// result gives a tool call its result: the call of the parent, or of one before it.
func (b *builder) result(n *Call, at int, it Item) {
	refs := b.tools[b.gist.id(it.ID)]
	for p, steps := n.Parent, 0; p >= 0 && steps < turnsTried; p, steps = b.r.Calls[p].Parent, steps+1 {
		for k := len(refs) - 1; k >= 0; k-- {
			if refs[k].call != p {
				continue
			}
			if t := &b.r.Calls[p].Tools[refs[k].tool]; t.Result < 0 {
				t.Result, t.Bad = at, it.Bad
			}
			return
		}
	}
}

// report notes that the last answer of another conversation comes back as the result of a tool: an agent has reported.
func (b *builder) report(n *Call, at int, text string) {
	b.find(text, func(c *Call, i int) bool {
		if c.reports < 0 && b.root(i) != b.root(n.Parent) {
			c.reports = at
			return true
		}
		return false
	})
}

// summary notes that a conversation begins with an earlier answer in the place of its history.
func (b *builder) summary(n *Call, at int, text string) {
	b.find(text, func(c *Call, _ int) bool {
		if c.summary < 0 && c.Thread == n.Thread && c.History > 0 {
			c.summary = at
			n.begins = causeCompaction
			return true
		}
		return false
	})
}

// find offers the answers that nobody went on from and that a text holds, until one is taken.
func (b *builder) find(text string, take func(*Call, int) bool) {
	if len(b.leaves) == 0 || len(text) < reportMin {
		return
	}
	text, short := b.gist.rests.Whole(text, 4*reportMax)
	if !short {
		return
	}
	text = squeeze(text)
	for k := len(b.leaves) - 1; k >= 0; k-- {
		i := b.leaves[k]
		c := &b.r.Calls[i]
		if c.text == "" {
			b.leaves = slices.Delete(b.leaves, k, k+1)
			continue
		}
		if strings.Contains(text, c.text) && take(c, i) {
			return
		}
	}
}

// root is the call that a conversation begins with.
func (b *builder) root(at int) int {
	for at >= 0 && b.r.Calls[at].Parent >= 0 {
		at = b.r.Calls[at].Parent
	}
	return at
}

// spawn notes that a conversation begins with the argument of a tool call.
func (b *builder) spawn(n *Call, at int, text string) {
	ref, ok := b.prompts[b.gist.text(text)]
	if !ok || b.r.Calls[ref.call].Thread == n.Thread && b.r.Threads[n.Thread].Sub {
		return
	}
	t := &b.r.Calls[ref.call].Tools[ref.tool]
	if t.Spawned < 0 {
		t.Spawned = at
	}
	if th := &b.r.Threads[n.Thread]; th.Sub && th.Spawn.Call < 0 {
		th.Spawn = Spawn{ref.call, ref.tool}
	}
}
