// Package fold puts JSON together from the pieces of a stream without decoding any of it.
//
// An Object collects members: the last value of one, the concatenated text of another, the joined elements of a third. Strings grow as raw
// interiors, so an escape keeps its spelling and the halves of a surrogate pair that two deltas brought meet again. A List holds things by an
// index that the other side chose: what it costs follows the number of indices met, never their size.
//
// It knows JSON and no dialect. Everything handed in is part of a document that jsonx.Valid has accepted.
package fold
