//go:build race

package invariants

// underRace tells that a database in Go takes many times as long: fewer crashes are enough to show whether something is shared.
const underRace = true
