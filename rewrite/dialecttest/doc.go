// Package dialecttest holds what every dialect has to pass, in one place: a dialect joins by calling it from its tests.
//
// Fold, Golden, Fuzz and CheckFold are about the raw record of a stream that passes through. The rest is about translation, and no pair
// of dialects is named in it. The commuting square is the heart:
//
//	upstream bytes ──decode──▶ events ──encode──▶ client bytes
//	      │                                            │
//	      └───────── Fold ══ must be equal ══ Fold ◀──decode
//
// Square is that of streams, Answer of whole answers, Refusal of failures with a status, CheckCall the way of requests. rewrite runs all of
// them for each client and each upstream (pairs_test.go).
//
// SameCall, EachWithout and Told are for properties of drawn requests: the package generate beside this one draws them, and answers.
//
// Every check takes a testing.TB and says in each failure which rule is broken. What a dialect has no words for is named by the caller,
// in the words of Difference.
package dialecttest
