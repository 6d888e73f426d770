// Package lint finds what is valid in a policy and probably not meant: rules that never decide, limits that a client steps
// around, lockouts that shut the wrong people, limits that let more through than the service is said to bear.
//
// [Check] works on what a policy says of itself, without a store and without requests. A finding is only reported where it
// follows from the text of the policy: a check that cannot be sure is silent. docs/check.md describes every check.
package lint
