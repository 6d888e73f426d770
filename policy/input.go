package policy

import (
	"net/http"
	"time"
)

// A scratch is what expressions see of a request: it is an expr.Input.

// Method returns the method, HEAD as GET.
func (s *scratch) Method() string { return methodOf(s.req.Method) }

// Path returns the path as it is matched.
func (s *scratch) Path() string { return matchedPath(s.req.Path) }

// Host returns the host without a port.
func (s *scratch) Host() string { return s.req.Host }

// IP returns the whole address of the client, "" if it is unknown.
func (s *scratch) IP() string {
	if !s.client.IsValid() {
		return ""
	}
	return s.client.String()
}

// Header returns the value of a header, "" if it is missing or there twice.
func (s *scratch) Header(name string) string {
	return headerValue(s.req.Header[http.CanonicalHeaderKey(name)])
}

// Cookie returns the value of a cookie.
func (s *scratch) Cookie(name string) string { return cookieValue(s.req.Header["Cookie"], name) }

// Query returns the value of a query parameter.
func (s *scratch) Query(name string) string { return queryValue(s.req.RawQuery, name) }

// Bytes returns the length of the request's body, 0 if it is not known before it has been read.
func (s *scratch) Bytes() int64 {
	if s.result.Status != 0 {
		return s.result.RequestBytes
	}
	return max(s.req.ContentLength, 0)
}

// Dimension returns the value of a dimension, "" if it is missing.
func (s *scratch) Dimension(name string) string {
	for i := range s.p.dims {
		if s.p.dims[i].name == name {
			text, _ := s.value(i)
			return text
		}
	}
	return ""
}

// Now returns the time of the request.
func (s *scratch) Now() time.Time { return s.now() }

// Status returns the status of the response.
func (s *scratch) Status() int { return s.result.Status }

// ResponseBytes returns the size of the response's body.
func (s *scratch) ResponseBytes() int64 { return s.result.Bytes }

// ResponseHeader returns the value of a header of the response.
func (s *scratch) ResponseHeader(name string) string {
	return headerValue(s.result.Header[http.CanonicalHeaderKey(name)])
}
