package messages

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// at is the path of an element of a member.
func at(path, member string, i int) string {
	var buf [96]byte
	b := append(append(append(buf[:0], path...), member...), '[')
	return string(append(strconv.AppendInt(b, int64(i), 10), ']'))
}

// The path of a value is given as that of its object and its own name, ".text", and only put together for a problem.

// text reads a string; null is absent.
func (in *callReader) text(raw []byte, path, member string) canon.Text {
	if jsonx.IsNull(raw) {
		return nil
	}
	text, ok := jsonx.Interior(raw)
	if !ok {
		in.fail(path+member, "must be a string")
		return nil
	}
	return text
}

// word reads a string that is compared with words; absent and null are nil.
func (in *callReader) word(raw []byte, path, member string) []byte {
	return fold.Name(in.text(raw, path, member))
}

// count reads an integer of 0 or more.
func (in *callReader) count(raw []byte, path, member string) canon.Raw {
	if n, ok := jsonx.Int(raw); !ok || n < 0 {
		in.fail(path+member, "must be an integer of 0 or more")
		return nil
	}
	return raw
}

func (in *callReader) number(raw []byte, path, member string) canon.Raw {
	if jsonx.KindOf(raw) != jsonx.KindNumber {
		in.fail(path+member, "must be a number")
		return nil
	}
	return raw
}

// flag reads a boolean; absent and null are false.
func (in *callReader) flag(raw []byte, path, member string) bool {
	if !jsonx.IsNull(raw) && jsonx.KindOf(raw) != jsonx.KindBool {
		in.fail(path+member, "must be true or false")
	}
	return string(raw) == "true"
}

// object gives raw back if it is an object.
func (in *callReader) object(raw []byte, path, member string) canon.Raw {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		in.fail(path+member, "must be an object")
		return nil
	}
	return raw
}

// make keeps the text that write appends.
func (in *callReader) make(write func(dst []byte) []byte) canon.Text {
	start := len(in.made)
	in.made = write(in.made)
	return in.made[start:len(in.made):len(in.made)]
}
