// Package httpverdict is what fronts and policies share: the Request that a policy judges, the Verdict it answers, the
// Decider between them, and the only table that turns a verdict into a status, headers and a body.
package httpverdict

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Request is what a policy sees of one HTTP request. Fronts make it with [FromHTTP]; tests fill it in by hand.
type Request struct {
	Method string
	// Host is in lower case and without a port.
	Host string
	// Path is the cleaned, still percent-encoded path: what is matched is what is forwarded. See CleanPath.
	Path string
	// RawQuery is the query as it was sent, without "?".
	RawQuery string
	// Peer is the address of the connection; invalid if unknown.
	Peer netip.Addr
	// Header is the request's header; read, never written.
	Header http.Header
	// Dimensions sets dimensions directly, "ip" among them. For tests and replays; fronts leave it nil.
	Dimensions map[string]string
	// ContentLength is the announced length of the body, -1 if unknown.
	ContentLength int64
}

// Decider judges requests. Implementations are safe for concurrent use. There is always a verdict: what to answer when
// the store fails is part of the policy.
type Decider interface {
	Decide(ctx context.Context, r *Request) *Verdict
}

// Timed is a Decider whose time can be passed in, for tests and replays.
type Timed interface {
	At(now time.Time) Decider
}

// Kind says what a verdict is made of; its status and its problem type follow from it, see [StatusOf].
type Kind uint8

const (
	// Allow: pass the request on.
	Allow Kind = iota
	// Limited: over a limit (429).
	Limited
	// LockedOut: the key is shut by a lockout (429).
	LockedOut
	// Forbidden: on a deny list, or without a dimension that a rule demands (403).
	Forbidden
	// BadRequest: cannot be judged: a malformed path, an invalid cost (400).
	BadRequest
	// Unavailable: the store failed and the policy is closed (503).
	Unavailable
	// Overloaded: shed (503).
	Overloaded
)

// Verdict is the answer of a policy for one request.
type Verdict struct {
	Kind Kind
	// ID names the verdict in headers, bodies, logs and traces.
	ID string
	// Rule is the name of the rule that decided; for a list "list:NAME"; "" if nothing matched.
	Rule string
	// Code is a stable word for the reason, such as "limited", "cost_exceeds_limit", "list_denied", "store_unavailable".
	Code string
	// Detail is one sentence for the person at the other end. It names no internals.
	Detail string
	// Limits are the enforced limits that were judged, in the order of the policy.
	Limits []LimitReport
	// Binding is the index in Limits of the one that decided; -1 if none did.
	Binding int
	// RetryAfter is when to come again; meaningful for a denial.
	RetryAfter headgate.Retry
	// Wait is how long an allowed request must be held before it goes on.
	Wait time.Duration
	// ClientIP is the address the policy holds the client to have; invalid if unknown.
	ClientIP netip.Addr
	// Shadow names the shadow rules that would have denied.
	Shadow []string
	// Response tells how a denial is written.
	Response ResponseStyle
	// Done, if not nil, must be called once when the request is over, with how it was answered: it releases and settles.
	// The context bounds the calls it makes, and may be one that outlives the request's.
	Done func(ctx context.Context, res Result)
}

// Allowed tells whether the request goes on.
func (v *Verdict) Allowed() bool { return v.Kind == Allow }

// Result is how a request was answered.
type Result struct {
	// Status is the response's status; 0 if there was none.
	Status int
	// Bytes is the size of the response's body.
	Bytes int64
}

// LimitReport is one judged limit in the words of the RateLimit headers.
type LimitReport struct {
	// Name is the rule's name, with "/1", "/2"… for the second limit and on.
	Name    string
	Limit   headgate.Limit
	Outcome headgate.Outcome
	// Policy is the limit's item of RateLimit-Policy where it is prepared; "" has [PolicyItem] make it.
	Policy string
}

// The styles of a denial's body.
const (
	StyleProblem  = "problem"
	StyleEnvelope = "envelope"
)

// ResponseStyle is the part of a policy that shapes its answers.
type ResponseStyle struct {
	// Style is [StyleProblem] (default, RFC 9457) or [StyleEnvelope].
	Style string
	// IETF and XRateLimit tell which header families to send. Neither set means IETF.
	IETF, XRateLimit bool
	// RetryJitter may lengthen a Retry-After by up to this fraction, 0 to 1.
	RetryJitter float64
}

// Need is something that a policy asks of the front that applies it.
type Need struct {
	Kind NeedKind
	// Rule and Field say which rule asks for it and where.
	Rule, Field string
}

// NeedKind is an ability of a front.
type NeedKind string

// The abilities. A front that lacks one refuses, when it is made, a policy that needs it.
const (
	NeedWait    NeedKind = "wait"    // hold an allowed request for Verdict.Wait
	NeedRelease NeedKind = "release" // call Verdict.Done when the request is over
)

// Needer is a Decider that knows what it needs of its front.
type Needer interface {
	Needs() []Need
}
