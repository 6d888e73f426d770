// Package resilience keeps a service deciding when what it depends on does not: a breaker for each node of the store, the
// number of instances that are alive, limits divided by it while the store is lost, the levels of degradation, and what is
// shed before the process is in danger. docs/reliability.md says what each of them costs and holds.
package resilience
