package testlang

import (
	"net/http"
	"net/netip"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Bounds of a file. What is over them is refused when the file is parsed.
const (
	MaxFileSize = 1 << 20
	MaxLine     = 64 << 10 // bytes
	MaxSteps    = 20_000
	// MaxRuns bounds how often one line runs: its repeats times its points in time.
	MaxRuns = 1_000_000
	// MaxFileRuns bounds the runs of all lines of a file.
	MaxFileRuns = 10_000_000
)

// File is a parsed .test file.
type File struct {
	// Name is the name that was given to Parse; policies are found relative to its folder.
	Name  string
	Cases []*Case
}

// Case is a group of limits, or a policy, that starts with no state, and the lines that use it.
type Case struct {
	// Line is where the case begins.
	Line int
	// Limits are the limits in the order of the file; empty if there is a Policy.
	Limits []NamedLimit
	Policy *Policy
	Steps  []*Step
}

// NamedLimit is a limit line. The limit without a name has the Name "".
type NamedLimit struct {
	Line  int
	Name  string
	Limit headgate.Limit
}

// Policy is a policy line: the path as it is written, or the text of the document.
type Policy struct {
	Line int
	Path string
	Text []byte
}

// Step is one "at" line.
type Step struct {
	Line int
	// Text is the line without its comment.
	Text string
	// Start is what offset 0 means here.
	Start time.Time
	// From, To and Every are the offsets at which the line runs, up to and including To. Every is at least 1 µs.
	From, To, Every time.Duration
	// Repeat is how often it runs at each of them.
	Repeat int
	Do     Action
	Want   Want
}

// Runs is how often the line runs in all.
func (s *Step) Runs() int64 { return s.points() * int64(s.Repeat) }

func (s *Step) points() int64 { return int64((s.To-s.From)/s.Every) + 1 }

// Action is what a step does: one of Take, Renew, Release, Refund, Reload and Request.
type Action interface{ action() }

// Target is a limit of the case, by its index, and a key.
type Target struct {
	Limit int
	Key   string
}

// Take asks to pay a cost to every target at once. With a Holder it is an acquire.
type Take struct {
	Cost   int64
	Holder string
	On     []Target
}

// Renew prolongs a holder's slot.
type Renew struct {
	Holder string
	On     Target
}

// Release frees a holder's slot.
type Release struct {
	Holder string
	On     Target
}

// Refund gives back units of the latest allowed takes.
type Refund struct {
	Units int64
	On    []Target
}

// Reload changes a limit and keeps its state.
type Reload struct {
	Limit int
	To    headgate.Limit
}

// Request is a request for a policy to judge: that of the first run, see Of.
type Request struct {
	Method, Host string
	// Target is the path and query as they are sent.
	Target     string
	Peer       netip.Addr
	Header     http.Header
	Dimensions map[string]string
	Body       string
	// Response is the status that the service answers an allowed request with.
	Response int
	// ResponseBytes and ResponseHeader are the size and the header of that answer.
	ResponseBytes  int64
	ResponseHeader http.Header
	// ResponseAfter is how long the service takes to answer, 0 if the request is over before the next one.
	ResponseAfter time.Duration

	// counted are the words that it is made of, if some of them count; see Of.
	counted []countedWord
}

func (Take) action()    {}
func (Renew) action()   {}
func (Release) action() {}
func (Refund) action()  {}
func (Reload) action()  {}
func (Request) action() {}

// Want is what a line expects.
type Want struct {
	// Word is "allow", "deny", "challenge", "ok", "gone", "error", "allowed" or "", which expects none of them.
	Word string
	// Code is the code of "error".
	Code headgate.Code
	// Allowed is the count of "allowed".
	Allowed int64
	// Fields are the other expectations, in the order of the line.
	Fields []Field
}

// Field is an expectation such as remaining=2. Value is in the form in which answers are shown, so that 60s equals 1m.
type Field struct{ Name, Value string }
