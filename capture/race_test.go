//go:build race

package capture

// raceDetector says that everything takes ten times as long.
const raceDetector = true
