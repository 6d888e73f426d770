// Package httpverdict is what fronts and policies share: the Request that a policy judges, the Verdict it answers, the
// Decider between them, and the only table that turns a verdict into a status, headers and a body.
package httpverdict

import (
	"context"
	"errors"
	"io"
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
	// Body lets a policy look at the body before it goes on; nil if there is none, or if the front cannot.
	Body Peeker
}

// Peeker shows the beginning of a request's body without taking it away: what was read goes on to the service as it came.
type Peeker interface {
	// Peek returns the whole body as it was sent, if it has at most that many bytes. It may be called again, also when the
	// request is over, and answers the same without reading again; the bytes must not be changed. The error is
	// [ErrBodyTooLarge], that of the context when the body comes too slowly, what reading met, or [ErrBodyPassed].
	Peek(ctx context.Context, most int) ([]byte, error)
}

// ErrBodyTooLarge says that a body has more bytes than a [Peeker] may keep.
var ErrBodyTooLarge = errors.New("the body is too large to look at")

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
	// Detail is one English sentence for the person at the other end, in place of what [Message] has for the code in that
	// language. It names no internals. "" is the rule.
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
	// Over is the signed text for the header [HeaderOver] of an allowed request that is over a limit all the same; "" for
	// none. The front sets it on the request to the service, and removes what the client has sent under this name from every
	// request.
	Over string
	// Stale, if not nil, lets the front answer with the last good answer of the same request; see [Stale].
	Stale *Stale
	// Fallback, if not nil, is what a denial is answered with in place of the body that Response describes. With an allowed
	// request it is for a front that finds the service failing: its answer where it would make a 502, 503 or 504 of its own.
	// A front that is part of the service has no use for that.
	Fallback *Fallback
	// Priority says how much an allowed request matters when the service has no place for all: [PriorityCritical],
	// [PriorityNormal] or [PrioritySheddable].
	Priority uint8
	// Matches says what became of every rule that was looked at, if the decider was made to explain; else it is nil.
	Matches []Match
	// Done, if not nil, must be called once when the request is over, with how it was answered: it releases and settles.
	// The context bounds the calls it makes, and may be one that outlives the request's.
	Done func(ctx context.Context, res Result)
}

// The priorities of requests, the one that is shed last first. A larger number counts as the last of them.
const (
	PriorityCritical uint8 = iota
	PriorityNormal
	PrioritySheddable
)

// Allowed tells whether the request goes on.
func (v *Verdict) Allowed() bool { return v.Kind == Allow }

// Result is how a request was answered.
type Result struct {
	// Status is the response's status; 0 if there was none.
	Status int
	// Bytes is the size of the response's body.
	Bytes int64
	// RequestBytes is how much of the request's body was read.
	RequestBytes int64
	// Header is the response's header; nil if there was none. Read, never written.
	Header http.Header
}

// Stale says under what a GET's answers may be kept and given again. A front that keeps answers does so for every allowed
// request that has it; one with a denial answers with what it has, and with the denial if it has nothing. One that forwards
// does so too where the service fails. While one request refreshes an answer, identical ones wait for it rather than go to the
// service.
type Stale struct {
	// Identity tells apart who may see the same answer: no answer is given to another identity. "" stands for everybody, and
	// only then the rule says that its answers are public.
	Identity string
	// MaxAge is how old an answer may be.
	MaxAge time.Duration
}

// Fallback is a ready answer.
type Fallback struct {
	// Status is from 200 to 599; any other stands for that of the verdict's kind.
	Status int
	// ContentType is sent as it is; "" sends none.
	ContentType string
	Body        []byte
}

// Match is what became of one rule that was looked at for a request.
type Match struct {
	Rule string
	// Skipped says in a few words why the rule did not apply; "" if it did.
	Skipped string
	// Key is its key for people, such as "ip=198.51.100.9 route=/login"; "" for one bucket for all.
	Key string
	// Shadow tells that the rule only watches.
	Shadow bool
	// Over tells that a limit had no room and the rule lets the request pass with a mark. The outcomes are then those of
	// charging what was left.
	Over bool
	// Cost is what it was charged, or is to be checked for.
	Cost int64
	// Limits are the limits in force and their outcomes, which are empty if the store was not asked.
	Limits []LimitReport
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
	StyleTemplate = "template"
)

// Template writes a page.
type Template interface {
	Execute(w io.Writer, page any) error
}

// ResponseStyle is the part of a policy that shapes its answers.
type ResponseStyle struct {
	// Style is [StyleProblem] (default, RFC 9457), [StyleEnvelope] or [StyleTemplate].
	Style string
	// Template makes the page of [StyleTemplate] out of a [Page]; an html/template is one.
	Template Template
	// Origins are those that may read denials from a page of theirs, such as "https://shop.example.com".
	Origins []string
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
	NeedResult  NeedKind = "result"  // call Verdict.Done with how the request was answered
	NeedBody    NeedKind = "body"    // set Request.Body
	NeedMark    NeedKind = "mark"    // set Verdict.Over on the request to the service
	NeedStale   NeedKind = "stale"   // keep answers as Verdict.Stale says
)

// Needer is a Decider that knows what it needs of its front.
type Needer interface {
	Needs() []Need
}
