package messages

import (
	"bytes"
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// system reads the system prompt, a string or a list of text blocks, into one message in front of all others. An empty list is none.
func (in *callReader) system(raw []byte) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindInvalid:
	case jsonx.KindString:
		in.r.Messages = append(in.r.Messages, plainMessage(canon.System, raw, "system", "system"))
	case jsonx.KindArray:
		start := len(in.parts)
		i := 0
		for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
			path := at("system", "", i)
			p := in.block(it.Value(), path, canon.System)
			if p.Type != canon.TextPart {
				in.fail(path+".type", "must be text")
			}
			in.parts = append(in.parts, p)
		}
		if parts := in.popParts(start); len(parts) > 0 {
			in.r.Messages = append(in.r.Messages, canon.Message{Role: canon.System, Parts: parts, Path: "system"})
		}
	default:
		in.fail("system", "must be a string or a list of text blocks")
	}
}

func plainMessage(role canon.Role, raw []byte, path, partPath string) canon.Message {
	text, _ := jsonx.Interior(raw)
	return canon.Message{Role: role, Plain: true, Path: path, Parts: []canon.Part{{Type: canon.TextPart, Text: text, Path: partPath}}}
}

// popParts takes the parts from start on off the stack.
func (in *callReader) popParts(start int) []canon.Part {
	parts := slices.Clone(in.parts[start:])
	clear(in.parts[start:])
	in.parts = in.parts[:start]
	return parts
}

func (in *callReader) messages(raw []byte) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindArray:
	case jsonx.KindInvalid:
		in.fail("messages", "is missing")
		return
	default:
		in.fail("messages", "must be a list")
		return
	}
	i := 0
	for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
		in.message(it.Value(), at("messages", "", i))
	}
}

func (in *callReader) message(raw []byte, path string) {
	if in.object(raw, path, "") == nil {
		return
	}
	var roleWord, content []byte
	var extra []canon.Member
	for it := jsonx.Object(raw); it.Next(); {
		switch name, value := fold.Name(it.Key()), it.Value(); string(name) {
		case "role":
			roleWord = value
		case "content":
			content = value
		default:
			if !jsonx.IsNull(value) {
				extra = append(extra, canon.Member{Name: name, Value: value})
			}
		}
	}
	var role canon.Role
	switch string(in.word(roleWord, path, ".role")) {
	case "user":
		role = canon.User
	case "assistant":
		role = canon.Assistant
	case "system": // in the middle of a conversation (harness.md 2.6)
		role = canon.System
	case "":
		in.fail(path+".role", "is missing")
		return
	default:
		in.fail(path+".role", "must be user, assistant or system")
		return
	}
	switch jsonx.KindOf(content) {
	case jsonx.KindString:
		m := plainMessage(role, content, path, path+".content")
		m.Extra = extra
		in.r.Messages = append(in.r.Messages, m)
	case jsonx.KindArray:
		in.turn(content, path, role, extra)
	case jsonx.KindInvalid:
		in.fail(path+".content", "is missing")
	default:
		in.fail(path+".content", "must be a string or a list of blocks")
	}
}

// turn reads a list of blocks. The results in it become messages of their own, in front of the rest (dialects.md 1.7.2).
func (in *callReader) turn(content []byte, path string, role canon.Role, extra []canon.Member) {
	start := len(in.parts)
	first := len(in.r.Messages)
	i := 0
	for it := jsonx.Array(content); it.Next() && in.bad == nil; i++ {
		p := in.block(it.Value(), at(path, ".content", i), role)
		if p.Type == canon.ResultPart {
			in.r.Messages = append(in.r.Messages, canon.Message{Role: canon.ToolRole, Parts: []canon.Part{p}, Path: path})
			continue
		}
		in.parts = append(in.parts, p)
	}
	if parts := in.popParts(start); len(parts) > 0 || len(in.r.Messages) == first {
		in.r.Messages = append(in.r.Messages, canon.Message{Role: role, Parts: parts, Path: path})
	}
	in.r.Messages[len(in.r.Messages)-1].Extra = extra
}

// blockType tells what part a block of this type is; 0: that is no type. What ends in _tool_result is the result of a tool that the
// provider ran.
func blockType(kind []byte) canon.PartType {
	switch string(kind) {
	case "":
		return 0
	case "text", "search_result", "tool_reference":
		return canon.TextPart
	case "image":
		return canon.ImagePart
	case "document":
		return canon.FilePart
	case "thinking":
		return canon.ReasoningPart
	case "redacted_thinking":
		return canon.RedactedPart
	case "tool_use":
		return canon.CallPart
	case "tool_result":
		return canon.ResultPart
	case "server_tool_use", "container_upload":
		return canon.HostedPart
	}
	if bytes.HasPrefix(kind, []byte("mcp_")) || bytes.HasSuffix(kind, []byte("_tool_result")) {
		return canon.HostedPart
	}
	return canon.UnknownPart
}
