// Package app is the composition root: it opens a store from its URL, loads a policy, puts the gateway in front of a
// service, and sees to it that everything starts in order and stops in order. It is the only package that knows all the
// others.
package app
