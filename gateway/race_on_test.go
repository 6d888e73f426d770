//go:build race

package gateway

// underRace tells that everything takes ten times as long.
const underRace = true
