package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// forward sends the request to the service and its answer to the client.
func (x *exchange) forward() {
	if most := x.g.cfg.MaxRequestBody; most > 0 && x.r.ContentLength > most {
		x.fail(faultLongBody())
		return
	}
	sent := time.Now()
	at, refused := x.g.pool.pick(search{now: sent, priority: x.verdict.Priority})
	if refused != nil {
		x.refuse(refused)
		return
	}
	x.at = at
	defer x.at.leave()
	x.openBody()
	res, err := x.send()
	answered := x.at.answered
	x.upstreamTime = answered.Sub(sent)
	if err != nil {
		x.upstreamFailed(err)
		return
	}
	defer res.Body.Close()
	defer func() { x.rest = time.Since(answered) }()
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		x.tunnel(res)
	case saysBusy(res.StatusCode) && x.giveFailed():
	default:
		x.respond(res)
	}
}

// send returns the answer of an upstream, or why there is none. A request whose connection could not be made is sent to another
// upstream, once.
func (x *exchange) send() (*http.Response, error) {
	res, unsent, err := x.roundTrip()
	if err == nil || !unsent || x.clientFailed() {
		return res, err
	}
	x.at.report(failed, untimed, err)
	next, refused := x.g.pool.pick(search{now: time.Now(), priority: x.verdict.Priority, avoid: x.at.u})
	if refused != nil {
		return nil, err
	}
	x.warn("an upstream cannot be connected to, the request goes to another", err)
	x.at.leave()
	x.at = next
	res, _, err = x.roundTrip()
	return res, err
}

// roundTrip returns an answer that can be passed on, and reports how the upstream has done. unsent tells that no upstream has
// seen anything of a request that failed.
func (x *exchange) roundTrip() (res *http.Response, unsent bool, err error) {
	u := x.at.u
	x.servedBy = u.name
	hints := &earlyHints{x: x}
	defer hints.end()
	watch := &httptrace.ClientTrace{Got1xxResponse: hints.pass}
	var dialled *connecting // there is nowhere else to go for a request to the only upstream
	if len(x.g.pool.all) > 1 {
		dialled = watchConnecting(watch)
	}
	transport := u.transport
	if x.websock {
		transport = u.upgrades
	}
	res, err = transport.RoundTrip(x.outgoing(httptrace.WithClientTrace(x.r.Context(), watch), &u.endpoint))
	x.at.answered = time.Now()
	switch {
	case err != nil:
		return nil, dialled.failed(err), err
	case res.StatusCode < 100: // net/http's server panics at these
		res.Body.Close()
		return nil, false, fmt.Errorf("the answer has the status %q", res.Status)
	case saysBusy(res.StatusCode):
		x.at.report(busy, untimed, errors.New("it answered "+res.Status)) // it may say so at once
	default:
		x.at.report(good, x.timing(), nil)
	}
	return res, false, nil
}

// timing tells whether the time of the request is the upstream's, and not that of a client that was slow to send its body.
func (x *exchange) timing() timing {
	if x.at.u.limiter != nil && x.body.slow(x.at.entered) {
		return untimed
	}
	return timed
}

// saysBusy tells whether an answer of the service says that it cannot serve now, in the way of a server or of a proxy in front of
// it. 500 does not: it is as often the request that makes it.
func saysBusy(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// connecting tells failures to connect from those of a connection. A TLS handshake that fails is among the former, but for one
// that was made after another connection had been tried.
type connecting struct{ connected, unshaken atomic.Bool }

func watchConnecting(t *httptrace.ClientTrace) *connecting {
	c := new(connecting)
	t.GotConn = func(httptrace.GotConnInfo) { c.connected.Store(true) }
	t.TLSHandshakeDone = func(_ tls.ConnectionState, err error) {
		if err != nil {
			c.unshaken.Store(true)
		}
	}
	return c
}

// failed tells whether an error of the transport means that no connection could be made. After a kept connection had turned out
// to be closed it does so only where the transport itself was to send the request once more.
func (c *connecting) failed(err error) bool {
	var dial dialError
	return c != nil && (errors.As(err, &dial) || c.unshaken.Load() && !c.connected.Load())
}
