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
// anybody else writes there is read and not believed.
func withProxyProtocol(l net.Listener, p *policy.Policy) (net.Listener, error) {
	if !p.TrustsAnyone() {
		return nil, usagef("proxy-protocol: policy %s trusts no proxy, so nobody's would be believed; add the proxies to clients.trusted_proxies", p.Name())
	}
	return &proxyproto.Listener{
		Listener:          l,
		ReadHeaderTimeout: gateway.DefaultHeaderTimeout,
		ConnPolicy: func(c proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			if p.TrustsPeer(httpverdict.PeerAddr(c.Upstream.String())) {
				return proxyproto.REQUIRE, nil
			}
			return proxyproto.IGNORE, nil
		},
	}, nil
}
