// Package archtest holds the architecture as data and checks it: which package may import what, what a user of a few
// packages compiles along, that no package has hidden state, and that no text names a machine. It has tests only.
//
// A test that fails says which row of the table it went against, and why that row is as it is. To change the
// architecture change the row, with its reason, in the same commit as the import.
package archtest
