package responses

import "rolltap/internal/jsonx"

// Logprob entries have three shapes (wire.md 3.2.4). Chat: {token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}, bytes may be null.
// The output_text part of an item: the same, bytes an array. Events of a stream: without bytes. Numbers keep their spelling.

// appendItemEntries appends entries of any shape, without brackets around them, as an item has them.
func appendItemEntries(dst, raw []byte) []byte { return appendEntries(dst, raw, "[]", false) }

// appendEventEntries appends the same for an event.
func appendEventEntries(dst, raw []byte) []byte { return appendEntries(dst, raw, "", false) }

// appendChatEntries appends the same for a canonical answer.
func appendChatEntries(dst, raw []byte) []byte { return appendEntries(dst, raw, "null", false) }

// appendEntries writes bytes that are not there as noBytes; as "" it writes no bytes at all.
func appendEntries(dst, raw []byte, noBytes string, top bool) []byte {
	first := true
	for it := jsonx.Array(raw); it.Next(); {
		entry := it.Value()
		if jsonx.KindOf(entry) != jsonx.KindObject {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendEntry(dst, entry, noBytes, top)
	}
	return dst
}

func appendEntry(dst, entry []byte, noBytes string, top bool) []byte {
	names := [...]string{"token", "logprob", "bytes", "top_logprobs"}
	var found [len(names)][]byte
	jsonx.GetAll(entry, names[:], found[:])
	dst = append(dst, `{"token":`...)
	dst = appendOr(dst, found[0], `""`)
	dst = append(dst, `,"logprob":`...)
	dst = appendOr(dst, found[1], "0")
	if noBytes != "" {
		dst = append(dst, `,"bytes":`...)
		dst = appendOr(dst, found[2], noBytes)
	}
	if !top {
		dst = append(dst, `,"top_logprobs":[`...)
		dst = appendEntries(dst, found[3], noBytes, true)
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendOr(dst, raw []byte, absent string) []byte {
	if jsonx.IsNull(raw) {
		return append(dst, absent...)
	}
	return jsonx.AppendCompact(dst, raw)
}
