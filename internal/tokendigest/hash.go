package tokendigest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

const (
	domain  = "nemo-gym-tokens"
	version = 1
)

// Hash digests ids that come one by one. Their number is hashed first, so it has to be known.
type Hash struct {
	h    hash.Hash
	buf  [4096]byte
	n    int // bytes in buf
	left int // ids that have not come yet
}

// New returns a Hash that is ready for n ids.
func New(n int) *Hash {
	h := &Hash{h: sha256.New(), left: n}
	h.n = copy(h.buf[:], domain)
	if n > 0 {
		h.buf[h.n] = version
		binary.BigEndian.PutUint64(h.buf[h.n+1:], uint64(n))
		h.n += 9
	}
	return h
}

// Add digests the next id.
func (h *Hash) Add(id uint64) {
	if h.n+8 > len(h.buf) {
		h.h.Write(h.buf[:h.n])
		h.n = 0
	}
	binary.BigEndian.PutUint64(h.buf[h.n:], id)
	h.n += 8
	h.left--
}

// Hex returns the digest, and false when not exactly as many ids have come as were announced. Nothing may be added behind it.
func (h *Hash) Hex() (string, bool) {
	h.h.Write(h.buf[:h.n])
	h.n = 0
	return hex.EncodeToString(h.h.Sum(h.buf[:0])), h.left == 0
}
