package app

import (
	"net/http"
	"net/netip"
)

// withoutForged removes the headers that the policy in force believes from its trusted proxies only from what anybody else
// sends, before the body or after it. The policy ignores them by itself; the service behind would not.
func withoutForged(g *Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now := g.live.Load(); len(now.trusted) > 0 {
			peer, err := netip.ParseAddrPort(r.RemoteAddr)
			if err != nil || !now.engine.Policy().TrustsPeer(peer.Addr()) {
				for _, name := range now.trusted {
					r.Header.Del(name)
					delete(r.Trailer, name) // the gateway passes on what is announced here
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}
