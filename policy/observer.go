package policy

import "time"

// Observer is told what an [Engine] decides. Its methods are called on the path of the request, from many goroutines at a
// time; they must be quick.
type Observer interface {
	// Decided is called once for each request: with the rule that decided ("list:NAME" for a list, "" if nothing matched), the
	// kind of the verdict ("allow", "limited", "locked_out", "forbidden", "bad_request", "unavailable", "overloaded"), and the
	// time that the decision took.
	Decided(rule, verdict string, took time.Duration)
	// ShadowDenied is called for each shadow rule that would have denied a request.
	ShadowDenied(rule string)
	// Shed is called for each request that is turned away since the process is in danger, with its priority: "critical",
	// "normal" or "sheddable".
	Shed(priority string)
	// StoreFailed is called for each call of the store that ended with an error of this code; fallback tells whether the request
	// was decided all the same, as on_error says. It is false for calls that decide nothing: those that give back, settle what
	// the answer cost, renew or release.
	StoreFailed(code string, fallback bool)
}
