//go:build race

package protocol

// raceDetector says that everything takes ten times as long.
const raceDetector = true
