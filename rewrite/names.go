package rewrite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// maxName is the longest tool name that every upstream takes.
const maxName = 64

// toolNames are the names under which tools go upstream and what they are called by the client. A nil *toolNames changes nothing.
//
// A namespaced tool is called <namespace>__<tool> there (dialects.md 3.3), except one of the namespace functions, which keeps its name. A name that is too long or has other characters than letters,
// digits, _ and -, and one that two tools would share, ends in a hash of what it stands for. A tool whose own name is fine keeps it, so that
// names depend neither on the order of the tools nor on the turn.
type toolNames struct {
	upstream map[toolKey]string
	client   map[string]canon.Call // by the name upstream: Name, Namespace, Custom
	taken    map[string]bool       // names upstream, also those that are the client's
	bridged  bool                  // custom tools are functions there
}

// toolKey is a tool as the client knows it.
type toolKey struct {
	namespace, name string
	custom          bool
}

func (k toolKey) joined() string {
	if k.bare() {
		return k.name
	}
	return k.namespace + "__" + k.name
}

// bare: there is no namespace, or the one in which plain functions are: OpenAI's models know every function by it, and what Codex tells the
// model about its tools names them without.
func (k toolKey) bare() bool { return k.namespace == "" || k.namespace == "functions" }

// plain: it may go upstream as it is.
func (k toolKey) plain() bool { return k.bare() && validName(k.name) }

func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func keyOf(namespace, name canon.Text, custom bool) toolKey {
	return toolKey{plainText(namespace), plainText(name), custom}
}

// newToolNames names the function and custom tools among tools.
func newToolNames(tools []canon.Tool) *toolNames {
	n := &toolNames{upstream: map[toolKey]string{}, client: map[string]canon.Call{}, taken: map[string]bool{}}
	wanted := map[string]int{} // by how many different tools
	var rest []*canon.Tool
	seen := map[toolKey]bool{}
	for i := range tools {
		t := &tools[i]
		k := keyOf(t.Namespace, t.Name, t.Kind == canon.CustomTool)
		if t.Kind == canon.HostedTool || seen[k] {
			continue
		}
		seen[k] = true
		if k.plain() && !n.taken[k.name] {
			n.give(k, k.name, t.Namespace, t.Name)
			continue
		}
		wanted[k.joined()]++
		rest = append(rest, t)
	}
	for _, t := range rest {
		k := keyOf(t.Namespace, t.Name, t.Kind == canon.CustomTool)
		name := k.joined()
		if !validName(name) || n.taken[name] || wanted[name] > 1 {
			name = n.hashed(k)
		}
		n.give(k, name, t.Namespace, t.Name)
	}
	return n
}

// give notes that k is called name upstream. What is called the same on both sides and is a function needs no way back.
func (n *toolNames) give(k toolKey, name string, namespace, own canon.Text) {
	n.upstream[k], n.taken[name] = name, true
	if k.custom || k.namespace != "" || k.name != name {
		n.client[name] = canon.Call{Name: bytes.Clone(own), Namespace: bytes.Clone(namespace), Custom: k.custom} // the request is not kept
	}
}

// hashed is a name for k that nobody has: what is legible of it, and a hash.
func (n *toolNames) hashed(k toolKey) string {
	legible := []byte(k.joined())
	if len(legible) > maxName-9 {
		legible = legible[:maxName-9]
	}
	for i, c := range legible {
		if !validName(string(c)) {
			legible[i] = '_'
		}
	}
	seed := k.namespace + "\x00" + k.name + "\x00" + strconv.FormatBool(k.custom)
	for {
		sum := sha256.Sum256([]byte(seed))
		name := string(legible) + "_" + hex.EncodeToString(sum[:4])
		if !n.taken[name] {
			return name
		}
		seed += "\x00"
	}
}

// sent is the name of a tool upstream. One that the request does not offer, as calls of earlier turns may name, is named like the others
// and found again if the model calls it.
func (n *toolNames) sent(namespace, name canon.Text, custom bool) canon.Text {
	k := keyOf(namespace, name, custom)
	known, ok := n.upstream[k]
	if !ok {
		if k.plain() && !custom {
			return name
		}
		known = k.joined()
		if !validName(known) || n.taken[known] && !k.plain() {
			known = n.hashed(k)
		}
		if n.taken[known] { // a custom call of what is a function now
			n.upstream[k] = known
		} else {
			n.give(k, known, namespace, name)
		}
	}
	if known == string(name) {
		return name
	}
	return canon.Text(known)
}

// find is the offered tool that a choice means: the one of that name, or the only one that is called so in any namespace.
func find(tools []canon.Tool, namespace, name canon.Text, custom bool) *canon.Tool {
	var called *canon.Tool
	several := false
	wantedNamespace, wantedName := plainText(namespace), plainText(name)
	for i := range tools {
		t := &tools[i]
		if plainText(t.Name) != wantedName {
			continue
		}
		if plainText(t.Namespace) == wantedNamespace && (t.Kind == canon.CustomTool) == custom {
			return t
		}
		several = several || called != nil
		called = t
	}
	if several || len(namespace) > 0 && called != nil && plainText(called.Namespace) != wantedNamespace {
		return nil
	}
	return called
}

// restore is what the client calls the tool that is called name upstream; only the members that name it are set. It is not ok when that is
// the same.
func (n *toolNames) restore(name canon.Text) (canon.Call, bool) {
	if n == nil {
		return canon.Call{}, false
	}
	c, ok := n.client[string(jsonx.Unquoted(name))]
	return c, ok
}

// needed: some answer may be changed by restore.
func (n *toolNames) needed() bool { return n != nil && len(n.client) > 0 }
