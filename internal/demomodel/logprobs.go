package demomodel

import (
	"math"
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
)

// mix is a small fixed hash (splitmix64): the same numbers on every run and
// machine.
func mix(seed uint64, more ...int) uint64 {
	for _, m := range more {
		seed += uint64(m) + 0x9e3779b97f4a7c15
		seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		seed = (seed ^ seed>>27) * 0x94d049bb133111eb
		seed ^= seed >> 31
	}
	return seed
}

// logprob is what the model "thought" of an id at a place: mostly a hair below
// zero, sometimes exactly zero, now and then unsure, as greedy decoding looks.
func logprob(seed uint64, at, id int) float64 {
	u := float64(mix(seed, at, id)>>11) / (1 << 53)
	if u < .05 {
		return 0
	}
	return -float64(float32(math.Pow(u, 14) * 2)) // engines compute in float32
}

// logprobWriter writes entries of one choice.
type logprobWriter struct {
	seed   uint64
	top    int
	python bool // spelling of numbers in whole answers; chunks have another
}

// append writes {"content":[...]} for the ids from one index to another.
func (w logprobWriter) append(dst []byte, a *answer, from, to int) []byte {
	dst = append(dst, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			dst = append(dst, ',')
		}
		chosen := logprob(w.seed, i, a.ids[i])
		dst = w.entry(dst, tokenText(a, i), chosen)
		dst = append(dst, `,"top_logprobs":[`...)
		for k := range w.top {
			if k == 0 {
				dst = append(w.entry(dst, tokenText(a, i), chosen), '}')
				continue
			}
			dst = append(dst, ',')
			other := firstPiece + int(mix(w.seed, i, k)%uint64(len(a.tok.pieces)-firstPiece))
			dst = append(w.entry(dst, a.tok.piece(other), chosen-6-float64(k)), '}')
		}
		dst = append(dst, `]}`...)
	}
	return append(dst, `]}`...)
}

// entry writes the members of one entry, without its closing brace.
func (w logprobWriter) entry(dst []byte, text string, p float64) []byte {
	dst = append(dst, `{"token":`...)
	dst = jsonx.AppendString(dst, text)
	dst = append(dst, `,"logprob":`...)
	dst = appendFloat(dst, p, w.python)
	dst = append(dst, `,"bytes":[`...)
	for i, c := range []byte(text) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(c), 10)
	}
	return append(dst, ']')
}

// tokenText is the text of an entry. An id that is only a part of a character
// has none; the last part has the whole character.
func tokenText(a *answer, i int) string {
	if special(a.ids[i]) {
		return a.tok.piece(a.ids[i])
	}
	from := 0
	if i > 0 {
		from = whole(a.said, a.ends[i-1])
	}
	return a.said[from:whole(a.said, a.ends[i])]
}

// appendFloat spells a number as Python does in whole answers (-4.8e-05) and as
// the encoder of chunks does (-0.000048, -4.8e-6).
func appendFloat(dst []byte, f float64, python bool) []byte {
	if f == 0 {
		return append(dst, "0.0"...)
	}
	small := 1e-5
	if python {
		small = 1e-4
	}
	if math.Abs(f) >= small {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return append(dst, s...)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	if !python {
		s = strings.Replace(s, "e-0", "e-", 1)
	}
	return append(dst, s...)
}

func pythonFloat(f float64) string { return string(appendFloat(nil, f, true)) }
