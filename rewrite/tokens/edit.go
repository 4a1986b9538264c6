package tokens

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string

	value, end int  // the member's value
	nullable   bool // where the server spells its nulls, the member becomes null
}

// segment is a stretch of a text that lies elsewhere in the bytes it was taken from.
type segment struct {
	at  int // where it begins in the text
	raw int // where it begins in the bytes
	n   int
}

// appendEdited appends text with edits, which are in order and do not overlap.
func appendEdited(dst, text []byte, edits []edit) []byte {
	at := 0
	for i := range edits {
		e := &edits[i]
		dst = append(dst, text[at:e.from]...)
		dst = append(dst, e.with...)
		at = e.to
	}
	return append(dst, text[at:]...)
}

// appendSegmented is appendEdited for edits of a text whose segments lie in raw; what lies between them stays.
func appendSegmented(dst, raw []byte, segments []segment, edits []edit) []byte {
	at := 0
	for i := range edits {
		with := edits[i].with
		for _, s := range segments {
			from, to := max(edits[i].from, s.at)-s.at+s.raw, min(edits[i].to, s.at+s.n)-s.at+s.raw
			if from >= to {
				continue
			}
			dst = append(dst, raw[at:from]...)
			dst = append(dst, with...)
			at, with = to, ""
		}
	}
	return append(dst, raw[at:]...)
}
