package training

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rolltap/internal/storefs"
)

const (
	dataSuffix    = ".tokens.jsonl"
	stateSuffix   = ".tokens.state.json"
	intentsSuffix = ".tokens.intents"
	markerSuffix  = ".tokens.incomplete"
	lockSuffix    = ".tokens.lock"

	maxCallLen = 256
)

// ValidID reports whether id may name a rollout: [A-Za-z0-9][A-Za-z0-9._-]{0,199}, as everywhere in the store.
func ValidID(id string) bool { return storefs.ValidID(id) }

// ValidCall reports whether id may name a call: 1 to 256 printable ASCII characters without a space, because an intent is a
// line whose ends readers strip.
func ValidCall(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxCallLen
}

func dataPath(dir, id string) string    { return filepath.Join(dir, id+dataSuffix) }
func statePath(dir, id string) string   { return filepath.Join(dir, id+stateSuffix) }
func intentsPath(dir, id string) string { return filepath.Join(dir, id+intentsSuffix) }
func markerPath(dir, id string) string  { return filepath.Join(dir, id+markerSuffix) }
func lockPath(dir, id string) string    { return filepath.Join(dir, id+lockSuffix) }

// Exists tells whether dir has anything of the rollout but a lock.
func Exists(dir, id string) bool {
	if !ValidID(id) {
		return false
	}
	for _, path := range [...]string{dataPath(dir, id), statePath(dir, id), intentsPath(dir, id), markerPath(dir, id)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// Held tells whether dir has tokens of the rollout, or intents and marks that speak of some, which nobody has dropped yet.
func Held(dir, id string) bool {
	if !ValidID(id) {
		return false
	}
	for _, path := range [...]string{dataPath(dir, id), intentsPath(dir, id), markerPath(dir, id)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// Rollouts returns the sorted ids that have entries, intents, a state or a marker in dir; a lock alone is none.
func Rollouts(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	ids := names[:0]
	for _, name := range names {
		for _, suffix := range [...]string{dataSuffix, stateSuffix, intentsSuffix, markerSuffix} {
			if id, ok := strings.CutSuffix(name, suffix); ok && ValidID(id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
