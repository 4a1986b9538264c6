package tokendigest

import (
	"bytes"
	"strconv"
	"testing"

	"rolltap/internal/jsonx"
)

// FuzzTokens compares with a reader that goes the long way round.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"[]", "[1,2,3]", "1,2", " [ 0 , 18446744073709551615 ] ", "[18446744073709551616]", "[1,]", "[01]", "[", "]", "[1 2]", "1,\n2", "[-1]", "[1.0]"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, list []byte, n int) {
		digest, count, err := Sum(list)
		ids, ok := slowly(string(list))
		if ok != (err == nil) || count != len(ids) {
			t.Fatalf("%q: %d ids, %v; they are %d, %t", list, count, err, len(ids), ok)
		}
		suffix, errSuffix := Suffix(list, n)
		prefix, errPrefix := Prefix(list, n)
		if !ok {
			return
		}
		if within := n >= 0 && n <= len(ids); within != (errSuffix == nil) || within != (errPrefix == nil) {
			t.Fatalf("%q at %d: %v, %v", list, n, errSuffix, errPrefix)
		} else if !within {
			return
		}
		var first []byte
		for i, id := range ids[:n] {
			if i > 0 {
				first = append(first, ',')
			}
			first = strconv.AppendUint(first, id, 10)
		}
		if d, _, err := Sum(first); err != nil || d != prefix {
			t.Fatalf("%q at %d: %s, %s, %v", list, n, d, prefix, err)
		}
		if !jsonx.Valid(suffix) {
			t.Fatalf("%q at %d: %q", list, n, suffix)
		}
		if d, c, err := Sum(first, suffix); err != nil || d != digest || c != count {
			t.Fatalf("%q in two at %d: %s of %d, %v", list, n, d, c, err)
		}
	})
}

func slowly(list string) ([]uint64, bool) {
	list = string(bytes.Trim([]byte(list), space))
	if len(list) > 1 && list[0] == '[' && list[len(list)-1] == ']' {
		list = list[1 : len(list)-1]
	}
	var ids []uint64
	for i, word := range bytes.Split([]byte(list), []byte(",")) {
		word = bytes.Trim(word, space)
		if i == 0 && len(word) == 0 && !bytes.Contains([]byte(list), []byte(",")) {
			return nil, true
		}
		id, err := strconv.ParseUint(string(word), 10, 64)
		if err != nil || word[0] == '+' || strconv.FormatUint(id, 10) != string(word) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}
