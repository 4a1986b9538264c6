// Package conventions holds the rules of this repository that a machine can check, as tests and nothing else.
//
// imports_test.go has the arrows: which package may import which, and which single package may know a library. rules_test.go
// has what holds for every package: documented, no state and no work at package level, no environment but main's, files of
// a readable length. texts_test.go has what holds for every file, Go or not. Each rule is tried on code that breaks it, and
// a rule that finds nothing to look at fails.
//
// A package that is new gets a row in arrows; a table at package level gets one in tables. Both want a reason that a
// reviewer can weigh; neither is a formality.
package conventions
