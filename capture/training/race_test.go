//go:build race

package training

// raceDetector says that everything takes ten times as long.
const raceDetector = true
