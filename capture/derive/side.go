package derive

import (
	"strings"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// Side says what a call was for when it was not a turn of the main conversation.
type Side string

// The kinds of side calls. Only what a request says of itself counts: a call that looks like any other is none.
const (
	SideNone       Side = ""
	SideTitle      Side = "title"      // a name for the session
	SideCompaction Side = "compaction" // a summary in place of the history
	SideSearch     Side = "search"     // one hosted search tool and nothing else
	SideCount      Side = "count"      // a token count
	SideProbe      Side = "probe"      // one token, to see whether the server answers
	SideSubAgent   Side = "subagent"   // a turn of an agent that another one started, where no header names it
)

// Aside reports whether such a call is no turn of anybody.
func (s Side) Aside() bool { return s != SideNone && s != SideSubAgent }

// headLen is how much of a prompt is looked at for the words that a harness always begins with.
const headLen = 4 << 10

// metadataMax is how long the metadata of a turn may be.
const metadataMax = 1 << 20

// side reads the marks that harnesses put into requests (harness.md 3 and 7).
func (c *Call) side() Side {
	if strings.HasSuffix(c.Own.Path, "/count_tokens") {
		return SideCount
	}
	if c.Request == nil {
		return SideNone
	}
	var got [9][]byte
	jsonx.GetAll(c.Request, []string{"messages", "input", "system", "tools", "output_config", "client_metadata", "max_tokens", "response_format", "text"}, got[:])
	talk := got[0]
	if word(c.Dialect) == "responses" {
		talk = got[1]
	}
	head, last, messages := ends(talk)
	if kind := c.codexKind(got[5]); kind == "compaction" || word(jsonx.Get(last, "type")) == "compaction_trigger" {
		return SideCompaction
	}
	toolless := !jsonx.Truthy(got[3])
	if role := word(jsonx.Get(last, "role")); role == "user" || role == "" {
		t := c.lastText(last)
		if strings.HasPrefix(t, "CRITICAL: Respond with TEXT ONLY") || toolless && strings.Contains(t, "CONTEXT CHECKPOINT COMPACTION") {
			return SideCompaction
		}
		if n, ok := jsonx.Int(got[6]); ok && n == 1 && messages == 1 {
			return SideProbe
		}
	}
	if toolless {
		for _, format := range [][]byte{jsonx.Get(got[4], "format"), jsonx.Get(got[7], "json_schema"), jsonx.Get(got[8], "format")} {
			if titled(jsonx.Get(format, "schema")) {
				return SideTitle
			}
		}
		for _, t := range []string{c.firstText(got[2]), c.firstText(jsonx.Get(head, "content"))} {
			if strings.Contains(t, "You are a title generator") {
				return SideTitle
			}
		}
	}
	if onlySearch(got[3]) && messages == 1 {
		return SideSearch
	}
	// The first system block of Claude Code says who asks.
	if t := c.firstText(got[2]); strings.HasPrefix(t, "x-anthropic-billing-header") && strings.Contains(t, "cc_is_subagent=true") {
		return SideSubAgent
	}
	return SideNone
}

// codexKind is request_kind of the turn metadata, which is JSON in a text.
func (c *Call) codexKind(metadata []byte) string {
	s, ok := capture.Text(jsonx.Get(metadata, "x-codex-turn-metadata"))
	if ok && capture.HasRest(s) {
		s, ok = c.Rests.Whole(s, metadataMax)
	}
	inner := []byte(s)
	if !ok || !jsonx.Valid(inner) {
		return ""
	}
	return word(jsonx.Get(inner, "request_kind"))
}

// ends are the first and the last element of a list, and how many there are.
func ends(list []byte) (head, last []byte, n int) {
	for it := jsonx.Array(list); it.Next(); n++ {
		if last = it.Value(); n == 0 {
			head = last
		}
	}
	return head, last, n
}

// lastText is the beginning of the last text of a message.
func (c *Call) lastText(message []byte) string {
	content := jsonx.Get(message, "content")
	var last []byte
	for it := jsonx.Array(content); it.Next(); {
		if t := jsonx.Get(it.Value(), "text"); t != nil {
			last = t
		}
	}
	if last == nil {
		last = content
	}
	return c.beginning(last)
}

// firstText is the beginning of the first text of content.
func (c *Call) firstText(content []byte) string {
	if jsonx.KindOf(content) == jsonx.KindString {
		return c.beginning(content)
	}
	if it := jsonx.Array(content); it.Next() {
		return c.beginning(jsonx.Get(it.Value(), "text"))
	}
	return ""
}

func (c *Call) beginning(raw []byte) string {
	if capture.HasRest(raw) {
		s, _ := capture.Text(raw)
		return c.Rests.Head(s, headLen)
	}
	in, _ := jsonx.Interior(raw)
	return string(jsonx.Unquoted(in[:min(len(in), headLen)]))
}

// titled: a schema whose only property is a title.
func titled(schema []byte) bool {
	n, title := 0, false
	properties := jsonx.Get(schema, "properties")
	for it := jsonx.Object(properties); it.Next(); n++ {
		title = string(it.Key()) == "title"
	}
	return n == 1 && title
}

// onlySearch: the tools are one hosted search.
func onlySearch(tools []byte) bool {
	head, _, n := ends(tools)
	kind := word(jsonx.Get(head, "type"))
	return n == 1 && (strings.HasPrefix(kind, "web_search_2") || kind == "web_search" || strings.HasPrefix(kind, "web_search_preview"))
}
