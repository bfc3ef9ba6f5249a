//go:build race

package answers

const raceDetector = true
