// Package pace keeps the garbage collector from running all the time while little is live: under small calls a sidecar has so little on its heap
// that the standard, as much again, is used up dozens of times a second. It sets GOGC for the whole process. In a container it also leaves
// room for what the collector does not count, by the memory limit.
package pace
