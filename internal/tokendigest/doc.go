// Package tokendigest digests sequences of token ids. A digest proves that a prompt begins with what a parent call has seen and said,
// without the parent's ids being at hand.
//
// The digest is a SHA-256 over
//
//	"nemo-gym-tokens"   the domain
//	0x01                the version of the digest
//	count               eight bytes, big end first
//	each id             the same
//
// and over the domain alone when there are no ids, in lower-case hex (capture.md 5.9). It is NeMo Gym's, byte for byte.
//
// Ids are texts: decimal integers from 0 to 2^64-1 as the engine wrote them, in a JSON array or separated by commas alone. A hundred thousand
// of them are hashed without a list of numbers ever being made.
//
// The package holds no state and imports nothing of ours.
package tokendigest
