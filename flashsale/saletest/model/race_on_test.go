//go:build race

package model

// underRace tells that a database in Go takes twenty times as long.
const underRace = true
