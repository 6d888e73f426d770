package httpverdict

import (
	"errors"
	"net/http"
)

var errTwoOrigins = errors.New("the request has more than one Origin, or more than one Sec-Fetch-Site")

// CheckOrigin is p.Check for requests that say once from where they come. One that says it twice is refused unless its method is safe, whatever is said: the
// check would go by the first line, and no browser sends a second one.
func CheckOrigin(p *http.CrossOriginProtection, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if len(r.Header["Origin"]) > 1 || len(r.Header["Sec-Fetch-Site"]) > 1 {
			return errTwoOrigins
		}
	}
	return p.Check(r)
}
