package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Defaults of Ejection.
const (
	DefaultConsecutive     = 5
	DefaultFailedShare     = 0.5
	DefaultLeastRequests   = 10
	DefaultEjectionWindow  = 10 * time.Second
	DefaultEjectedFor      = 5 * time.Second
	DefaultEjectedForAtMax = 60 * time.Second
)

const maxEjection = 24 * time.Hour

// Ejection says when an upstream that fails gets no more requests, and when it gets some again. The zero value is ready to use.
//
// Failures are connections that cannot be made, time-outs to the header of an answer, connections that end before it, and
// answers that are none or break off. What a client breaks off is none, nor is a connection that ends while a request's body is
// still being sent, which a client can bring about. Requests that are lost with one connection are one failure. 502, 503 and 504
// from the upstream itself are failures too, as long as at least half of the upstreams stay in service: clients can bring these
// about as well, and the last one is not ejected for saying that it is busy.
//
// An ejected upstream is left alone for a time, and then probed until it can be reached. Then it gets one request at a time, until
// one is answered well, and from there on one more at a time with each good answer. If the trial fails, it is ejected for twice as
// long. While all upstreams are ejected, requests are answered at once: 503 with the code upstream_unavailable, unless the verdict
// has something better.
type Ejection struct {
	// Off leaves every upstream in service, whatever it does.
	Off bool
	// Consecutive ejects after as many failures in a row; 0 stands for DefaultConsecutive, negative never does.
	Consecutive int
	// FailedShare ejects when at least this share of the requests of the last Window has failed, of at least LeastRequests; 0
	// stands for DefaultFailedShare, negative never does, 1 is the most.
	FailedShare   float64
	LeastRequests int           // 0 stands for DefaultLeastRequests
	Window        time.Duration // 0 stands for DefaultEjectionWindow
	// For is how long the first ejection lasts. Each one that follows soon lasts twice as long as the one before, up to Most;
	// all are lengthened by up to a quarter at random. 0 stands for DefaultEjectedFor and DefaultEjectedForAtMax; a day is the most.
	For, Most time.Duration
	// HealthPath, such as /healthz, is asked for by the probe, which wants an answer out of 200 to 299 within the
	// ConnectTimeout; "" is content with a TCP connection. The path in the upstream's URL comes in front of it.
	HealthPath string
	// StatusIsFine takes 502, 503 and 504 of an upstream for answers like any other.
	StatusIsFine bool
}

func (e Ejection) withDefaults() Ejection {
	setDefault(&e.Consecutive, DefaultConsecutive)
	setDefault(&e.FailedShare, DefaultFailedShare)
	setDefault(&e.LeastRequests, DefaultLeastRequests)
	setDefault(&e.Window, DefaultEjectionWindow)
	setDefault(&e.For, DefaultEjectedFor)
	setDefault(&e.Most, max(DefaultEjectedForAtMax, e.For))
	return e
}

func (e *Ejection) validate() error {
	switch {
	case e.FailedShare > 1:
		return fmt.Errorf("gateway: Ejection.FailedShare is %g; it is a part of 1", e.FailedShare)
	case e.LeastRequests < 0 || e.Window < windowCells || e.For < 0:
		return errors.New("gateway: Ejection has a bound that is out of range; use 0 for the default")
	case e.Most > maxEjection || e.Window > maxEjection:
		return fmt.Errorf("gateway: Ejection.Most, For and Window are at most %s", maxEjection)
	case e.Most < e.For:
		return fmt.Errorf("gateway: Ejection.Most, %s, is less than Ejection.For, %s", e.Most, e.For)
	case e.HealthPath != "" && (!strings.HasPrefix(e.HealthPath, "/") || !plainQuery(e.HealthPath)):
		return fmt.Errorf("gateway: Ejection.HealthPath is %q; it is a path such as /healthz, as it goes over the wire", e.HealthPath)
	}
	return nil
}
