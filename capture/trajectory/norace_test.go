//go:build !race

package trajectory

// raceDetector says that everything takes ten times as long.
const raceDetector = false
