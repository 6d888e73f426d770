// Package engine runs a flash sale on its ports: it takes units in the Stock, has SQL decide, follows SQL in the Stock, lets shoppers
// pay, and brings everything to its one end whatever fails between two steps. Any number of instances may run it on the same
// stores. Every step that a job makes can be made alone, by the methods that end in Once, which is how the tests interleave them.
//
// The example puts a whole sale together.
package engine
