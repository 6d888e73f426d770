package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
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
	way := new(course)
	watch := &httptrace.ClientTrace{Got1xxResponse: hints.pass, GotConn: way.got, TLSHandshakeDone: way.shaken, WroteHeaders: way.wrote}
	x.at.upload(x.body)
	res, err = x.at.transport(x.websock).RoundTrip(x.outgoing(httptrace.WithClientTrace(x.r.Context(), watch), &u.endpoint))
	x.at.answered = time.Now()
	x.at.way = way
	switch {
	case err != nil:
		return nil, way.unsent(err), err
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
