package trajectory

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// Read goes through a rollout. One that cannot be read has no calls and the gap derive.GapReadFailed, and comes with an *derive.Unreadable. Any other
// error is that of progress, which is told the bytes of each line and may be nil. The Rollout keeps it.
func Read(dir, id string, progress func(bytes int64) error) (*Rollout, error) {
	b := newBuilder(id)
	found, err := derive.Source{Dir: dir, Rollout: id, Outline: capture.OutlineFrom, Refer: true}.Each(func(c *derive.Call, l capture.Line) error {
		if c != nil {
			b.add(c)
		}
		if progress != nil {
			return progress(l.Size())
		}
		return nil
	})
	if err != nil && found.Err == nil {
		return nil, err
	}
	if found.Err != nil {
		b = newBuilder(id)
		b.gap(-1, derive.GapReadFailed, "")
	}
	r := b.finish(found)
	r.Progress = progress
	return r, err
}

// builder places the calls of a rollout one after the other. A record is durable before its answer ends, so whoever goes on from an
// answer is recorded behind it.
type builder struct {
	r       *Rollout
	gist    *gister
	threads map[string]int
	said    map[uint64][]int     // calls by the ids of their tool calls, and by what they say
	tools   map[uint64][]toolRef // by id
	asked   map[request]int      // the first call that asked this
	prompts map[uint64]toolRef   // tool calls by the texts in their arguments
	leaves  []int                // the last calls whose answers are nothing but text and that nobody goes on from

	elements []element // of the request in progress
	turns    []turn    // in its history
	news     []Item    // what it says behind the parent's answer
}

type toolRef struct{ call, tool int }

type request struct {
	thread int
	full   uint64
}

// turn is a run of elements that the model said, in a history.
type turn struct {
	gist   gist
	before uint64 // of all that stands in front of it
	end    int    // elements up to its end
}

const (
	leavesKept = 64        // how many answers are looked for in results and summaries
	reportMin  = 24        // the shortest text that is
	reportMax  = 256 << 10 // and the longest
	promptMin  = 16        // the shortest argument that an agent is known by
	elementMax = 1 << 15   // elements of a request that is compared
	turnsTried = 32        // how far back a history is searched for an answer that was recorded
)

func newBuilder(id string) *builder {
	return &builder{
		r: &Rollout{ID: id}, gist: newGister(), threads: map[string]int{}, said: map[uint64][]int{}, tools: map[uint64][]toolRef{},
		asked: map[request]int{}, prompts: map[uint64]toolRef{},
	}
}

// add places a call. Nothing of the line is kept but names and ids of tools, and the text of an answer without tools.
func (b *builder) add(c *derive.Call) {
	id, _ := jsonx.Text(c.ID)
	n := Call{
		Index: c.Index, ID: id, Side: c.Own.Side, Outcome: c.Own.Outcome, Parent: -1, Same: -1, Branch: -1, reports: -1, summary: -1,
		Started: seconds(c.Started), Completed: seconds(c.Completed), Thread: b.thread(c), unread: c.Request == nil,
	}
	at := len(b.r.Calls)
	b.gist.rests = c.Rests
	b.r.Threads[n.Thread].Calls++
	dialect, _ := jsonx.Text(c.Dialect)
	b.read(&n, dialect, c)
	b.place(&n, at)
	if !n.Side.Aside() && !n.Long {
		b.see(&n, at)
		if first, ok := b.asked[request{n.Thread, n.full}]; ok {
			n.Same = first
		} else {
			b.asked[request{n.Thread, n.full}] = at
		}
	}
	b.r.Calls = append(b.r.Calls, n)
	b.answer(at, dialect, c)
}

func seconds(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0
	}
	return f
}

// thread is who made a call: the agent where one is named, else the session.
func (b *builder) thread(c *derive.Call) int {
	o := &c.Own
	key := "session " + o.Session
	sub := o.Agent != "" && o.Agent != o.Session
	if sub {
		key = "agent " + o.Agent
	}
	if o.Side == derive.SideSubAgent && !sub {
		key += " subagent" // no header names it
	}
	at, ok := b.threads[key]
	if !ok {
		at = len(b.r.Threads)
		b.threads[key] = at
		b.r.Threads = append(b.r.Threads, Thread{Session: o.Session, Agent: o.Agent, Parent: o.Parent, Sub: c.SubAgent(), Spawn: Spawn{-1, -1}})
	}
	return at
}

// read finds the turns in the history of a request.
func (b *builder) read(n *Call, dialect string, c *derive.Call) {
	b.turns, b.elements = b.turns[:0], b.elements[:0]
	if n.Long = c.Lossy; !n.Long {
		elements(dialect, c.Request, func(e element) {
			if n.Long = len(b.elements) == elementMax; !n.Long {
				b.elements = append(b.elements, e)
			}
		})
	}
	if n.Long {
		b.elements = b.elements[:0]
		return
	}
	var all uint64
	open := false
	for i, e := range b.elements {
		g := b.gist.element(e)
		switch {
		case g.spoken && open:
			t := &b.turns[len(b.turns)-1]
			t.gist = t.gist.joinedWith(g)
			t.end = i + 1
		case g.spoken:
			b.turns = append(b.turns, turn{*g, all, i + 1})
			open = true
		default:
			open = false
		}
		for _, h := range g.hashes {
			all = mix(all, h)
		}
	}
	n.full, n.History = all, len(b.turns)
}

// place finds the call that a request goes on from: the last turn of its history that was recorded.
func (b *builder) place(n *Call, at int) {
	for i := len(b.turns) - 1; i >= max(0, len(b.turns)-turnsTried); i-- {
		t := &b.turns[i]
		best, score, ties := -1, 0, 0
		var how match
		b.candidates(t, func(p int) {
			s, m := b.rate(n, t, i, p)
			switch {
			case s > score:
				best, score, ties, how = p, s, 0, m
			case s == score && s > 0 && p != best:
				best, ties = p, ties+1 // they come in the order of the file
			}
		})
		if best < 0 {
			continue
		}
		p := &b.r.Calls[best]
		if p.children == 0 && len(p.answers) > 1 {
			p.taken = max(0, slices.IndexFunc(p.answers, func(g gist) bool { return g.in(&t.gist) == how }))
		}
		n.Parent, n.New = best, t.end
		n.Exact = how == matchSame && t.before == p.full && i == len(b.turns)-1 && !p.Long
		n.opens = n.History < p.History+1
		p.children++
		p.text = ""
		if !n.Side.Aside() {
			b.gaps(n, at, i, t, ties, how)
		}
		return
	}
	if len(b.turns) > 0 && !n.Side.Aside() {
		b.gap(at, GapHistoryUnrecorded, strconv.Itoa(len(b.turns))+" answers")
	}
}

func (b *builder) gaps(n *Call, at, i int, t *turn, ties int, how match) {
	p := &b.r.Calls[n.Parent]
	switch {
	case i < len(b.turns)-1:
		b.gap(at, GapAnswerUnrecorded, strconv.Itoa(len(b.turns)-1-i)+" answers")
	case how == matchID:
		b.gap(at, GapAnswerChanged, "")
	}
	if t.before != p.full && !n.opens && !p.Long {
		b.gap(at, GapHistoryChanged, "")
	}
	if ties > 0 {
		b.gap(at, GapParentAmbiguous, strconv.Itoa(ties+1)+" calls")
	}
}

// candidates visits the calls that may have said a turn, in the order of the file.
func (b *builder) candidates(t *turn, visit func(int)) {
	last := -1
	for _, keys := range [][]uint64{t.gist.ids, t.gist.calls, t.gist.texts, {t.gist.joined}} {
		for _, h := range keys {
			for _, p := range b.said[h] {
				if p != last {
					visit(p)
				}
				last = p
			}
		}
		if last >= 0 {
			return // what is found by ids need not be looked for by words
		}
	}
}

// rate is how likely it is that call p said the turn i; 0: it did not.
func (b *builder) rate(n *Call, t *turn, i, p int) (score int, how match) {
	c := &b.r.Calls[p]
	byID := false
	for k := range c.answers {
		if m := c.answers[k].in(&t.gist); m > how {
			how, byID = m, len(c.answers[k].ids) > 0 && len(t.gist.ids) > 0
		}
	}
	if how == matchNone {
		return 0, how
	}
	same := t.before == c.full && !c.Long
	if !same && !byID && (c.Thread != n.Thread || c.History != i) {
		return 0, matchNone // the same few words somewhere else
	}
	score = 1
	for _, k := range []struct {
		holds bool
		worth int
	}{{same, 16}, {how == matchSame, 8}, {c.Thread == n.Thread, 4}, {c.History == i, 2}} {
		if k.holds {
			score += k.worth
		}
	}
	return score, how
}

// answer keeps what a call said so that it can be found again.
func (b *builder) answer(at int, dialect string, c *derive.Call) {
	n := &b.r.Calls[at]
	text, only := "", true
	for _, items := range answers(dialect, c.Response) {
		g := b.gist.gist(items)
		n.answers = append(n.answers, g)
		for _, it := range items {
			switch it.Kind {
			case Called:
				only = false
				b.tool(at, it)
			case Said:
				text += it.Text + "\n"
			}
		}
		if n.Side.Aside() && n.Side != derive.SideCompaction {
			continue // nobody goes on from it
		}
		keys := append(append(append([]uint64(nil), g.ids...), g.calls...), g.texts...)
		if g.joined != 0 && len(g.texts) > 1 {
			keys = append(keys, g.joined)
		}
		for _, h := range keys {
			if l := b.said[h]; len(l) == 0 || l[len(l)-1] != at {
				b.said[h] = append(l, at)
			}
		}
	}
	n.taken = max(0, slices.IndexFunc(n.answers, func(g gist) bool { return !g.empty() })) // until a history tells
	if text, short := c.Rests.Whole(text, reportMax); only && short && !n.Side.Aside() {
		if n.text = squeeze(summaryOf(text)); len(n.text) >= reportMin {
			if b.leaves = append(b.leaves, at); len(b.leaves) > leavesKept {
				b.leaves = b.leaves[1:]
			}
		}
	}
}

// answers are the alternatives that an answer holds: one, except where a Chat client asked for several.
func answers(dialect string, response []byte) [][]Item {
	if response == nil || ErrorText(response) != "" {
		return nil
	}
	if dialect != "chat" {
		return [][]Item{ResponseItems(dialect, response)}
	}
	var all [][]Item
	for it := jsonx.Array(jsonx.Get(response, "choices")); it.Next(); {
		all = append(all, chatMessage(nil, jsonx.Get(it.Value(), "message")))
	}
	return all
}

func (b *builder) tool(at int, it Item) {
	n := &b.r.Calls[at]
	ref := toolRef{at, len(n.Tools)}
	n.Tools = append(n.Tools, Tool{ID: capture.Brief(it.ID), Name: capture.Brief(it.Name), Result: -1, Spawned: -1, id: b.gist.id(it.ID)})
	if id := n.Tools[ref.tool].id; id != 0 {
		b.tools[id] = append(b.tools[id], ref)
	}
	text, short := b.gist.rests.Whole(it.Text, capture.OutlineFrom)
	raw := []byte(text)
	if !short || !jsonx.Valid(raw) {
		return
	}
	for m := jsonx.Object(raw); m.Next(); {
		if s, ok := jsonx.Text(m.Value()); ok && len(s) >= promptMin {
			b.prompts[b.gist.text(s)] = ref
		}
	}
}

// squeeze makes one space of every run of white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// summaryOf is what stands between the tags that harnesses ask for, else all.
func summaryOf(s string) string {
	if _, in, ok := strings.Cut(s, "<summary>"); ok {
		in, _, _ = strings.Cut(in, "</summary>")
		return in
	}
	return s
}

func (b *builder) gap(call int, code, detail string) {
	b.r.Gaps = append(b.r.Gaps, Gap{derive.Gap{Code: code, Detail: detail}, call})
}
