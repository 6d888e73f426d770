//go:build race

package engine

// underRace tells that everything takes ten times as long.
const underRace = true
