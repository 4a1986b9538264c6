package lineage

import "rolltap/internal/tokendigest"

// PrefixDigest returns the digest of the first n ids of array. A prompt continues a parent if the digest of as many first ids as the parent
// has in prompt and generation is the parent's digest. With fewer ids the error is tokendigest.ErrShort; what is behind the n ids is not read.
func PrefixDigest(array []byte, n int) (string, error) { return tokendigest.Prefix(array, n) }

// Suffix returns the ids behind the first n as a JSON array of its own, spelled as in array: what a record needs that names its parent. The error
// is tokendigest.ErrShort or ErrTokens.
func Suffix(array []byte, n int) ([]byte, error) { return tokendigest.Suffix(array, n) }
