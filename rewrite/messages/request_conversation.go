package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// conversation writes system and messages. The system and developer messages in front are the system prompt; a later one stays where it is,
// with role system.
func (w *callWriter) conversation() {
	turns := w.r.Messages
	n := 0
	for n < len(turns) && roleOf(&turns[n]) == "system" && (!w.own || turns[n].Path == "system") {
		n++
	}
	w.system(turns[:n])
	w.key("messages")
	w.dst = append(w.dst, '[')
	if w.own {
		w.ownTurns(turns[n:])
	} else {
		w.turns(turns[n:])
	}
	w.dst = append(w.dst, ']')
}

func roleOf(m *canon.Message) string {
	switch m.Role {
	case canon.Assistant:
		return "assistant"
	case canon.System, canon.Developer:
		return "system"
	}
	return "user"
}

func (w *callWriter) system(lead []canon.Message) {
	if len(lead) == 0 {
		return
	}
	if w.own && len(lead) == 1 && plain(&lead[0]) {
		w.text("system", lead[0].Parts[0].Text)
		return
	}
	w.besides(lead)
	start := len(w.dst)
	w.key("system")
	w.dst = append(w.dst, '[')
	empty := len(w.dst)
	w.blocks(lead, "system")
	if len(w.dst) == empty {
		w.dst = w.dst[:start]
		return
	}
	w.dst = append(w.dst, ']')
}

func plain(m *canon.Message) bool {
	return m.Plain && len(m.Parts) == 1 && m.Parts[0].Type == canon.TextPart && m.Parts[0].Cache == nil
}

// ownTurns writes a conversation of this dialect. What came from one message has its path, and goes into one again.
func (w *callWriter) ownTurns(turns []canon.Message) {
	for len(turns) > 0 {
		role, n := roleOf(&turns[0]), 1
		for n < len(turns) && roleOf(&turns[n]) == role && turns[n].Path == turns[0].Path {
			n++
		}
		w.open(role)
		if n == 1 && plain(&turns[0]) && turns[0].Role != canon.ToolRole {
			w.quote(turns[0].Parts[0].Text)
		} else {
			w.dst = append(w.dst, '[')
			w.blocks(turns[:n], role)
			w.dst = append(w.dst, ']')
		}
		for i := range turns[:n] {
			w.extra(turns[i].Extra, turns[i].Path)
		}
		w.dst = append(w.dst, '}')
		turns = turns[n:]
	}
}

// turns writes a conversation of another dialect: what is said by one role in a row is one message, and nobody says nothing.
func (w *callWriter) turns(turns []canon.Message) {
	said := ""
	for len(turns) > 0 {
		role, n := roleOf(&turns[0]), 1
		for n < len(turns) && roleOf(&turns[n]) == role {
			n++
		}
		start := len(w.dst)
		if said != role {
			if said != "" {
				w.dst = append(w.dst, ']', '}')
			}
			w.open(role)
			w.dst = append(w.dst, '[')
		}
		empty := len(w.dst)
		w.blocks(turns[:n], role)
		w.besides(turns[:n])
		if len(w.dst) > empty {
			said = role
		} else {
			w.dst = w.dst[:start]
		}
		turns = turns[n:]
	}
	if said != "" {
		w.dst = append(w.dst, ']', '}')
	}
}

// besides notes what messages of another dialect have besides their parts.
func (w *callWriter) besides(turns []canon.Message) {
	if w.own {
		return
	}
	for i := range turns {
		w.extra(turns[i].Extra, turns[i].Path)
		if turns[i].Name != nil {
			w.lose(turns[i].Path+".name", canon.NoEquivalent)
		}
	}
}

func (w *callWriter) open(role string) {
	w.next()
	w.dst = append(w.dst, `{"role":"`...)
	w.dst = append(w.dst, role...)
	w.dst = append(w.dst, `","content":`...)
}

// blocks writes the parts of messages of one role, the results first: they have to follow the calls.
func (w *callWriter) blocks(turns []canon.Message, role string) {
	for _, results := range []bool{true, false} {
		for i := range turns {
			if (turns[i].Role == canon.ToolRole) != results {
				continue
			}
			for j := range turns[i].Parts {
				w.block(&turns[i].Parts[j], role)
			}
		}
	}
}

// nameOf is the type of a block, part or item that is lost, for the end of its path.
func nameOf(raw canon.Raw) string {
	if kind, ok := jsonx.Interior(jsonx.Get(raw, "type")); ok && len(kind) > 0 {
		return "." + string(fold.Name(kind))
	}
	return ""
}
