package app

import (
	"net"

	proxyproto "github.com/pires/go-proxyproto"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// withProxyProtocol takes the address of a client from the PROXY protocol, version 1 or 2, that a trusted proxy writes
// before its bytes. A trusted proxy must write it: one that forgot to would let its clients write it themselves. What
// anybody else writes there is read and not believed. Who is trusted is what the policy says that is in force when the
// connection comes.
func withProxyProtocol(l net.Listener, inForce func() *policy.Policy) net.Listener {
	return &proxyproto.Listener{
		Listener:          l,
		ReadHeaderTimeout: gateway.DefaultHeaderTimeout,
		ConnPolicy: func(c proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			if inForce().TrustsPeer(httpverdict.PeerAddr(c.Upstream.String())) {
				return proxyproto.REQUIRE, nil
			}
			return proxyproto.IGNORE, nil
		},
	}
}

// checkProxyProtocol refuses a policy under which the PROXY protocol makes no sense.
func checkProxyProtocol(p *policy.Policy) error {
	if p.TrustsAnyone() {
		return nil
	}
	return usagef("proxy-protocol: policy %s trusts no proxy, so nobody's would be believed; add the proxies to clients.trusted_proxies", p.Name())
}
