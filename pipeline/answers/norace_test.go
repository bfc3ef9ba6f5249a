//go:build !race

package answers

const raceDetector = false
