package app

import (
	"net/http"
	"net/netip"

	"github.com/headgate-io/headgate/policy"
)

// withoutForged removes the headers that a policy believes from its trusted proxies only from what anybody else sends.
// The policy ignores them by itself; the service behind would not.
func withoutForged(p *policy.Policy, next http.Handler) http.Handler {
	names := p.TrustedHeaders()
	if len(names) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !p.TrustsPeer(peer.Addr()) {
			for _, name := range names {
				r.Header.Del(name)
			}
		}
		next.ServeHTTP(w, r)
	})
}
