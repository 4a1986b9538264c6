package demomodel

import (
	"strings"

	"rolltap/internal/jsonx"
)

// The chat template, ChatML-like:
//
//	<|im_start|>system\n{system}\n\n# Tools\n{tool}\n...<|im_end|>\n
//	<|im_start|>user\n{content}<|im_end|>\n
//	<|im_start|>assistant\n<think>{reasoning}</think>\n\n{content}<tool_call>\n{"name": ..., "arguments": ...}\n</tool_call><|im_end|>\n
//	<|im_start|>tool\n{content}<|im_end|>\n
//	<|im_start|>assistant\n
//
// It has the prefix property: the prompt of a turn starts with the prompt and the
// generated ids of the turn before, as long as the client gives the answer back
// unchanged. Three things make that hold. Every piece between two special tokens
// is encoded on its own, here and by the generator alike. A turn without
// reasoning has no think block at all, so it does not matter whether thinking was
// off or not used. Arguments are spelled in one way, whatever white space the
// client's JSON library put into them.
type transcript struct {
	tok *tokenizer
	ids []int
}

func (t *transcript) special(id int) { t.ids = append(t.ids, id) }

func (t *transcript) text(s string) { t.ids = t.tok.append(t.ids, s) }

// prompt renders a conversation up to where the model goes on writing.
func (m *model) prompt(r *request) []int {
	t := &transcript{tok: m.tok}
	messages := r.Messages
	system, given := "", false
	if len(messages) > 0 && (messages[0].Role == "system" || messages[0].Role == "developer") {
		system, given = messages[0].Content.Text, true
		messages = messages[1:]
	}
	if given || len(r.Tools) > 0 {
		t.open("system")
		t.text(system)
		if len(r.Tools) > 0 {
			t.text("\n\n# Tools\n")
			for _, tool := range r.Tools {
				t.text(spaced(tool.Raw) + "\n")
			}
		}
		t.close()
	}
	keepFrom := 0
	if m.o.StripReasoning {
		keepFrom = lastUser(messages)
	}
	for i, msg := range messages {
		if msg.Role != "assistant" {
			t.open(msg.Role)
			t.text(msg.Content.Text)
			t.close()
			continue
		}
		t.open("assistant")
		t.assistant(msg, i >= keepFrom)
		if r.ContinueFinal && i == len(messages)-1 {
			return t.ids
		}
		t.close()
	}
	t.open("assistant")
	return t.ids
}

func (t *transcript) open(role string) {
	t.special(tokTurn)
	t.text(role + "\n")
}

func (t *transcript) close() {
	t.special(tokEnd)
	t.text("\n")
}

func (t *transcript) assistant(m message, keepReasoning bool) {
	content := m.Content.Text
	if thoughts := m.thoughts(); thoughts != "" {
		// The model writes two newlines behind its thinking. A stream shows them
		// as content, a whole answer with calls does not: both come back the same.
		content = strings.TrimPrefix(content, afterThinking)
		if keepReasoning {
			t.special(tokThink)
			t.text(thoughts)
			t.special(tokThinkEnd)
			t.text(afterThinking)
		}
	}
	t.text(content)
	for i, c := range m.ToolCalls {
		if i > 0 {
			t.text("\n")
		}
		t.special(tokCall)
		t.text(callText(c.Function.Name, spaced([]byte(c.Function.Arguments))))
		t.special(tokCallEnd)
	}
}

// afterThinking separates the thinking from what follows.
const afterThinking = "\n\n"

// The text of a call is callOpen, the name, callMiddle, the arguments, callClose.
const (
	callOpen   = "\n{\"name\": \""
	callMiddle = "\", \"arguments\": "
	callClose  = "}\n"
)

func callText(name, arguments string) string {
	return callOpen + escaped(name) + callMiddle + arguments + callClose
}

func escaped(s string) string { return string(jsonx.AppendEscaped(nil, []byte(s))) }

// lastUser is the index of the last user message: reasoning before it is old.
func lastUser(messages []message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "user" {
			return i
		}
	}
	return 0
}

// spaced spells JSON as Python's json.dumps does by default, one space behind
// colons and commas and no other white space. Anything else is left as it is.
func spaced(raw []byte) string {
	if !jsonx.Valid(raw) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw)+16)
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString && c == '\\':
			out = append(out, c, raw[i+1])
			i++
		case c == '"':
			inString = !inString
			out = append(out, c)
		case inString:
			out = append(out, c)
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == ',' || c == ':':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
