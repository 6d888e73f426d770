package httpverdict

import "net/http"

// outcomeKinds is the table behind every answer: one row per [Kind]. Its texts are in kindTexts.
var outcomeKinds = [...]struct {
	name   string
	status int
	// problem is the fragment of a problem type of the ratelimit-headers draft; "" stands for about:blank.
	problem string
}{
	Allow:       {"allow", http.StatusOK, ""},
	Limited:     {"limited", http.StatusTooManyRequests, "quota-exceeded"},
	LockedOut:   {"locked_out", http.StatusTooManyRequests, "abnormal-usage-detected"},
	Forbidden:   {"forbidden", http.StatusForbidden, ""},
	BadRequest:  {"bad_request", http.StatusBadRequest, ""},
	Unavailable: {"unavailable", http.StatusServiceUnavailable, ""},
	Overloaded:  {"overloaded", http.StatusServiceUnavailable, "temporary-reduced-capacity"},
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

// problemType returns the type of a problem document.
func problemType(k Kind) string {
	if int(k) < len(outcomeKinds) && outcomeKinds[k].problem != "" {
		return problemTypes + outcomeKinds[k].problem
	}
	return "about:blank"
}
