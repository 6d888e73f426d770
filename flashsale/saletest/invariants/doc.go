// Package invariants has tests only: what a sale promises whatever happens, I1 to I16, each as a test by its name, and input that is
// refused and changes nothing. Every test runs on three pairs of stores: memory and SQLite, Redis and PostgreSQL, Redis and MariaDB, with
// the engine, the provider and the faults in one process and the clock in the test's hand.
package invariants
