//go:build race

package cli

// raceDetector says that everything takes ten times as long.
const raceDetector = true
