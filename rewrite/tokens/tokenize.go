package tokens

import "rolltap/internal/jsonx"

// TokenizeRequest returns the body that asks an engine's POST /tokenize for the ids of the prompt of a Chat request, which is the one that
// was sent. It has the members that shape a prompt, as they are spelled there (capture.md 5.4), and those that vLLM's route takes beside
// them (wire.md 1.2), and no other. Nil: the request shapes its prompt by something that the route does not take, so its answer would be the
// ids of another prompt.
func TokenizeRequest(sent []byte) []byte {
	taken := []string{
		"model", "messages", "tools", "chat_template_kwargs", "mm_processor_kwargs", "required_prefix_token_ids",
		"add_generation_prompt", "continue_final_message", "add_special_tokens", "chat_template",
	}
	var in [10][]byte
	jsonx.GetAll(sent, taken, in[:])
	var other [5][]byte
	jsonx.GetAll(sent, []string{"reasoning_effort", "documents", "truncate_prompt_tokens", "truncation_side", "media_io_kwargs"}, other[:])
	for _, raw := range other {
		if !jsonx.IsNull(raw) {
			return nil
		}
	}
	return jsonx.AppendMembers(nil, taken, in[:])
}

// TokenizeAnswer returns the ids of an answer of /tokenize, a JSON array, and their number. ok is false when there are none, when they are no
// ids, and when the count beside them is another.
func TokenizeAnswer(body []byte) (ids []byte, n int, ok bool) {
	var l list
	var m members
	m.enter(body, space(body, 0), 0)
	told := -1
	for m.next() {
		switch string(m.key) {
		case "tokens":
			m.i = l.ids(body, m.i, m.depth)
		case "count":
			if count, ok := jsonx.Int(m.skip()); ok {
				told = int(count)
			}
		default:
			m.skip()
		}
	}
	if m.i < 0 || space(body, m.i) != len(body) || !l.seen || l.bad || l.n == 0 || told >= 0 && told != l.n {
		return nil, 0, false
	}
	ids = append(make([]byte, 0, len(l.text)+2), '[')
	ids = append(ids, l.text...)
	return append(ids, ']'), l.n, true
}
