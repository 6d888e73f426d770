//go:build race

package faults

// underRace tells that everything takes several times as long.
const underRace = true
