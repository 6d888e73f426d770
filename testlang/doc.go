// Package testlang is the .test language: limits and policies tested in lines of text, in virtual time.
//
//	limit token_bucket 3/1m burst=3
//	at 0s take 1 -> allow remaining=2
//	at 3s take 3 -> deny retry_after=17s
//
// [Parse] reads a file, [Run] runs it against any limiter whose time can be passed in, and against any policy that
// answers as a Decider. docs/testing.md has the grammar and what each word means.
package testlang
