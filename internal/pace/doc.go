// Package pace keeps the garbage collector from running all the time while little is live: under small calls a sidecar has so little on its heap
// that the standard, as much again, is used up dozens of times a second. It sets GOGC for the whole process and nothing else.
package pace
