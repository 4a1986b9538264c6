package capture

import (
	"path/filepath"
	"strings"

	"rolltap/internal/storefs"
)

// fileName names a file of the store for a journal: the id of a rollout is the file of its records, and behind the id a slash, which
// no id has, and a Part are its token files.
type fileName string

// Part is one of the token files of a rollout. Package training keeps them; a Store makes durable what is appended to them, and a
// replay brings it back.
type Part string

const (
	PartTokens  Part = "tokens"  // <id>.tokens.jsonl: a JSON object with a model_call_id each line
	PartIntents Part = "intents" // <id>.tokens.intents: a call id each line; one that was overwritten with spaces is withdrawn
)

const (
	partRecords Part = ""

	tokensSuffix  = ".tokens.jsonl"
	intentsSuffix = ".tokens.intents"
	stateSuffix   = ".tokens.state.json"
	lockSuffix    = ".tokens.lock"

	maxNameLen = storefs.MaxIDLen + 8 // "/intents"
)

func nameOf(rollout string, p Part) fileName {
	if p == partRecords {
		return fileName(rollout)
	}
	return fileName(rollout + "/" + string(p))
}

func (n fileName) split() (rollout string, p Part) {
	rollout, part, _ := strings.Cut(string(n), "/")
	return rollout, Part(part)
}

func (n fileName) rollout() string { id, _ := n.split(); return id }
func (n fileName) part() Part      { _, p := n.split(); return p }

// valid reports whether it names a file: no other name ever reaches the file system.
func (n fileName) valid() bool {
	id, p := n.split()
	known := p == partRecords || p == PartTokens || p == PartIntents
	return known && ValidID(id) && n == nameOf(id, p)
}

// base is the name that the file has in the folder of the store.
func (n fileName) base() string {
	switch id, p := n.split(); p {
	case PartTokens:
		return id + tokensSuffix
	case PartIntents:
		return id + intentsSuffix
	default:
		return id + dataSuffix
	}
}

func (n fileName) path(dir string) string { return filepath.Join(dir, n.base()) }

func tokenStatePath(dir, id string) string { return filepath.Join(dir, id+stateSuffix) }
func tokenLockPath(dir, id string) string  { return filepath.Join(dir, id+lockSuffix) }
