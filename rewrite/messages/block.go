package messages

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Answers do not say whose dialect their raw blocks and citations are in; their types do.

// ownBlock tells that a raw block, of a hosted tool mostly, is one of this dialect (wire.md 3.1.2).
func ownBlock(raw []byte) bool {
	kind := typeOf(raw)
	switch string(kind) {
	case "server_tool_use", "mcp_tool_use", "container_upload":
		return true
	case "compaction": // Responses has an item of the same name, which is encrypted
		return jsonx.Get(raw, "encrypted_content") == nil
	}
	return bytes.HasSuffix(kind, []byte("_tool_result"))
}

// hostedBlock tells that a block is a call or a result of a tool that the provider runs.
func hostedBlock(kind []byte) bool {
	switch string(kind) {
	case "server_tool_use", "mcp_tool_use":
		return true
	}
	return bytes.HasSuffix(kind, []byte("_tool_result"))
}

// ownCite tells that a citation is one of this dialect: all its kinds end alike (wire.md 3.1.3), and no annotation of OpenAI's does.
func ownCite(raw []byte) bool { return bytes.HasSuffix(typeOf(raw), []byte("_location")) }

func typeOf(raw []byte) []byte {
	kind, _ := jsonx.Interior(jsonx.Get(raw, "type"))
	return kind
}

// readable tells that a signature or sealed content means something in this dialect: it came in it, or is a seal of ours.
func readable(by canon.Dialect) bool { return by == "" || by == canon.Messages }

// losePart notes that part n has no block.
func losePart(kind canon.PartType, raw []byte, n int, losses *canon.Losses) {
	if losses == nil {
		return
	}
	name := ""
	switch kind {
	case canon.RedactedPart:
		name = "redacted_thinking"
	case canon.ImagePart:
		name = "image"
	case canon.AudioPart:
		name = "audio"
	case canon.VideoPart:
		name = "video"
	case canon.FilePart:
		name = "file"
	case canon.ReferencePart:
		name = "item_reference"
	default:
		name = dialect.LossName(typeOf(raw))
	}
	losses.Add(blockPath(n, name), kind.LostWhy())
}

// blockPath is the path of something in block n of an answer.
func blockPath(n int, name string) string {
	return "content[" + strconv.Itoa(n) + "]." + name
}
