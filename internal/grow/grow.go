package grow

const least = 64

// Append is append(dst, p...).
func Append(dst, p []byte) []byte { return append(Room(dst, len(p)), p...) }

// Room returns dst with room for n more bytes behind it.
func Room(dst []byte, n int) []byte {
	if need := len(dst) + n; need > cap(dst) {
		return append(make([]byte, 0, max(need, 2*cap(dst), least)), dst...)
	}
	return dst
}
