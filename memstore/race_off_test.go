//go:build !race

package memstore

const flood = 1_000_000
