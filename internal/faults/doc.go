// Package faults has the fault tests: real instances of Headgate, each a process of its own, on a real Redis, while the store,
// the network, the clock or an instance fails. Every decision is written down and judged from the outside, by
// internal/referee, which knows the words of the limits and nothing of how they are kept. docs/reliability.md explains the
// table that the tests print.
//
//	go test ./internal/faults -run Faults -v -faults.table table.md
package faults
