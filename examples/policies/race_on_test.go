//go:build race

package policies_test

// runsInMemory is how many runs a file may have: under the race detector a run takes ten times as long, and a race needs no
// million of them.
const runsInMemory = 200_000
