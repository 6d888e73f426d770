// Package oracle is a second, slow and plain implementation of every limit, for tests to compare with: exact numbers from
// math/big, one mutex, a map. It is written from docs/decisions/0001-exact-semantics.md and shares no code with the
// packages that it judges.
package oracle
