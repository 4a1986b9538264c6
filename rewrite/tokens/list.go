package tokens

import (
	"strconv"

	"rolltap/internal/jsonx"
)

// maxDigits is how long an id may be: more is no token of any vocabulary, and fits no integer.
const maxDigits = 18

// list is a list of numbers out of one answer or event, as text. It is used again for the next one.
type list struct {
	text []byte // the numbers, separated by commas; a part of the answer where that is written so
	n    int
	seen bool // there was a list, maybe an empty one
	bad  bool // there was something that is no such list; text and n mean nothing then
	own  []byte
}

func (l *list) reset() { *l = list{own: l.own[:0]} }

// ids reads the list of ids at p[i] inside of depth containers, or the null there, and returns the index after it; -1 if it is no JSON.
// Ids are integers of 0 and above; strings of digits count (capture.md 5.4).
func (l *list) ids(p []byte, i, depth int) int {
	l.reset()
	if end, n := plainIDs(p, i); end >= 0 {
		l.text, l.n, l.seen = p[i+1:end-1], n, true
		return end
	}
	return l.read(p, i, depth, idText)
}

// numbers reads a list of numbers.
func (l *list) numbers(p []byte, i, depth int) int {
	l.reset()
	return l.read(p, i, depth, finite)
}

// read reads a list of elements that check accepts and gives the spelling of.
func (l *list) read(p []byte, i, depth int, check func([]byte) []byte) int {
	end := jsonx.ValueEnd(p, i, depth)
	if end < 0 || jsonx.IsNull(p[i:end]) {
		return end
	}
	l.seen = true
	if p[i] != '[' {
		l.bad = true
		return end
	}
	for it := jsonx.Array(p[i:end]); it.Next(); {
		l.add(check(it.Value()))
	}
	return end
}

// add adds the spelling of a number; nil: it is none.
func (l *list) add(number []byte) {
	if number == nil {
		l.bad = true
		return
	}
	if l.n > 0 {
		l.own = append(l.own, ',')
	}
	l.own = append(l.own, number...)
	l.text = l.own
	l.n++
}

// plainIDs reads a list that is written as engines write it, digits and commas and nothing else. It returns the index after it and the
// number of ids; -1 for any other.
func plainIDs(p []byte, i int) (end, n int) {
	if i >= len(p) || p[i] != '[' {
		return -1, 0
	}
	i++
	if i < len(p) && p[i] == ']' {
		return i + 1, 0
	}
	for i < len(p) {
		from := i
		for i < len(p) && p[i]-'0' <= 9 {
			i++
		}
		if digits := i - from; digits == 0 || digits > maxDigits || digits > 1 && p[from] == '0' || i == len(p) {
			break
		}
		n++
		switch p[i] {
		case ',':
			i++
			continue
		case ']':
			return i + 1, n
		}
		break
	}
	return -1, 0
}

// idText is the id that raw stands for, nil if it is none.
func idText(raw []byte) []byte {
	if len(raw) > 0 && raw[0] == '"' {
		raw, _ = jsonx.Interior(raw)
	}
	if len(raw) == 0 || len(raw) > maxDigits || len(raw) > 1 && raw[0] == '0' {
		return nil
	}
	for _, b := range raw {
		if b < '0' || b > '9' {
			return nil
		}
	}
	return raw
}

const namedPrefix = "token_id:"

// namedID is the id of a token whose text is written token_id:N, as return_tokens_as_token_ids makes it; nil if it is none.
func namedID(token []byte) []byte {
	in, ok := jsonx.Interior(token)
	if !ok || len(in) <= len(namedPrefix) || string(in[:len(namedPrefix)]) != namedPrefix {
		return nil
	}
	return idText(in[len(namedPrefix):])
}

// finite is raw itself if it is a number that fits a double, else nil: a boolean is none, and neither is null, which engines write for NaN
// and the infinities.
func finite(raw []byte) []byte {
	small := len(raw) > 0 && len(raw) < 300 // without an exponent that can make it larger
	for i, b := range raw {
		if b-'0' > 9 && b != '-' && b != '.' {
			small = small && b|0x20 == 'e' && raw[i+1] == '-'
			break
		}
	}
	if small {
		return raw
	}
	if jsonx.KindOf(raw) != jsonx.KindNumber {
		return nil
	}
	if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
		return nil
	}
	return raw
}
