package storefs

// MaxIDLen is the longest rollout id: with the longest suffix of a store it stays below the 255 bytes that file systems allow.
const MaxIDLen = 200

// ValidID reports whether id may name a rollout: [A-Za-z0-9][A-Za-z0-9._-]{0,199}. Every such id is a safe file name, and no other id ever
// reaches the file system.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxIDLen {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}
