package dialecttest

import (
	"fmt"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// EachWithout calls yield for every member of every object in a JSON value: with its path, its value, and the whole value without it. Elements of lists stay there:
// only their members are left out. A member that is an empty object or list is not, as it mostly says nothing.
func EachWithout(body []byte, yield func(path string, value, without []byte)) {
	eachWithout(body, "", func(path string, value []byte, from, to int) {
		yield(path, value, append(append(make([]byte, 0, len(body)), body[:from]...), body[to:]...))
	}, 0)
}

// eachWithout gives the places that a member and the comma beside it take in the body; at is where value begins there.
func eachWithout(value []byte, path string, yield func(path string, value []byte, from, to int), at int) {
	offset := func(part []byte) int { return at + cap(value) - cap(part) } // parts end where value's array ends
	switch jsonx.KindOf(value) {
	case jsonx.KindObject:
		type member struct {
			from, to int
			value    []byte
		}
		var all []member
		var names []string
		for it := jsonx.Object(value); it.Next(); {
			all = append(all, member{offset(it.Key()) - 1, offset(it.Value()) + len(it.Value()), it.Value()})
			names = append(names, string(jsonx.AppendUnquoted(nil, it.Key())))
			eachWithout(it.Value(), joined(path, names[len(names)-1]), yield, offset(it.Value()))
		}
		for i, m := range all {
			switch {
			case string(m.value) == "{}", string(m.value) == "[]":
				continue
			case i+1 < len(all):
				m.to = all[i+1].from
			case i > 0:
				m.from = all[i-1].to
			}
			yield(joined(path, names[i]), m.value, m.from, m.to)
		}
	case jsonx.KindArray:
		i := 0
		for it := jsonx.Array(value); it.Next(); i++ {
			eachWithout(it.Value(), fmt.Sprintf("%s[%d]", path, i), yield, offset(it.Value()))
		}
	}
}

func joined(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// Told tells whether a loss says that the member at a path of a body is lost: it names the member, or what the member is in. A loss may end in the
// word for what was lost where there is no member of that name, such as the type of a block: all of that is lost then.
func Told(losses []canon.Loss, body []byte, path string) bool {
	for _, l := range losses {
		if within(path, l.Path) {
			return true
		}
		if dot := strings.LastIndexByte(l.Path, '.'); dot > 0 && within(path, l.Path[:dot]) && find(body, l.Path) == nil {
			return true
		}
	}
	return false
}

// within tells whether a path is the other one, or leads on from it.
func within(path, from string) bool {
	rest, ok := strings.CutPrefix(path, from)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// find is the value at a path, nil when there is none.
func find(body []byte, path string) []byte {
	for path != "" && body != nil {
		end := strings.IndexAny(path, ".[")
		if end == 0 && path[0] == '[' {
			n := 0
			list, _ := fmt.Sscanf(path, "[%d]", &n)
			if list != 1 || jsonx.KindOf(body) != jsonx.KindArray {
				return nil
			}
			it := jsonx.Array(body)
			for ; n >= 0 && it.Next(); n-- {
				body = it.Value()
			}
			if n >= 0 {
				return nil
			}
			path = strings.TrimPrefix(path[strings.IndexByte(path, ']')+1:], ".")
			continue
		}
		if end < 0 {
			end = len(path)
		}
		body = jsonx.Get(body, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return body
}
