package httpverdict

import "net/http"

// outcomeKinds is the table behind every answer: one row per [Kind].
var outcomeKinds = [...]struct {
	name   string
	status int
	title  string
	// problem is the fragment of a problem type of the ratelimit-headers draft; "" stands for about:blank.
	problem string
}{
	Allow:       {"allow", http.StatusOK, "Allowed", ""},
	Limited:     {"limited", http.StatusTooManyRequests, "Too many requests", "quota-exceeded"},
	LockedOut:   {"locked_out", http.StatusTooManyRequests, "Locked out", "abnormal-usage-detected"},
	Forbidden:   {"forbidden", http.StatusForbidden, "Forbidden", ""},
	BadRequest:  {"bad_request", http.StatusBadRequest, "Bad request", ""},
	Unavailable: {"unavailable", http.StatusServiceUnavailable, "Unavailable", ""},
	Overloaded:  {"overloaded", http.StatusServiceUnavailable, "Overloaded", "temporary-reduced-capacity"},
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// String returns the kind in one word, as metrics and logs show it.
func (k Kind) String() string {
	if int(k) < len(outcomeKinds) {
		return outcomeKinds[k].name
	}
	return "kind(?)"
}

// StatusOf returns the HTTP status that a verdict of this kind is answered with: 200 for [Allow], whose real status is
// the service's, and 500 for an unknown kind.
func StatusOf(k Kind) int {
	if int(k) < len(outcomeKinds) {
		return outcomeKinds[k].status
	}
	return http.StatusInternalServerError
}
