//go:build !race

package invariants

const underRace = false
