//go:build race

package policy

// raceDetector tells that it is on: it has pools forget at random, so that allocations are not what they are.
const raceDetector = true
