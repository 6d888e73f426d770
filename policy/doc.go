// Package policy turns a YAML document of rules into verdicts on HTTP requests.
//
// [Load] and [Parse] read a document strictly and compile it into an immutable [Policy]; whatever is wrong in it is reported
// at once, each problem with its file, line and column. An [Engine] applies a policy with any [headgate.Limiter]: deny lists
// first, then allow lists, then every rule that matches, in one take, all or nothing.
//
// The document is described in docs/policy.md.
package policy
