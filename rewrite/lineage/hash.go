package lineage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// hasher is a SHA-256 over fields that cannot run into each other.
type hasher struct {
	h    hash.Hash
	head *[9]byte // kept, so that not every field allocates one
}

func newHasher(domain string) hasher {
	h := hasher{h: sha256.New(), head: new([9]byte)}
	h.h.Write([]byte(domain))
	return h
}

// field adds its tag, its length as eight bytes, big end first, and itself.
func (h hasher) field(tag byte, s []byte) {
	h.head[0] = tag
	binary.BigEndian.PutUint64(h.head[1:], uint64(len(s)))
	h.h.Write(h.head[:])
	h.h.Write(s)
}

// sum puts the digest of what was added so far into out. More may be added behind it.
func (h hasher) sum(out *[sha256.Size]byte) { h.h.Sum(out[:0]) }

func (h hasher) hex() string {
	var out [sha256.Size]byte
	h.sum(&out)
	return hex.EncodeToString(out[:])
}
