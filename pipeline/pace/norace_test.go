//go:build !race

package pace_test

const raceDetector = false
