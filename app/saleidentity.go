package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

var errNobody = errors.New("nobody vouches for who sends this")

// identity finds out who sends a request, from what the policy has judged of it.
func (s *sale) identity(r *http.Request) (salehttp.Shopper, error) {
	j, ok := gateway.JudgedOf(r.Context())
	if !ok {
		return salehttp.Shopper{}, errors.New("the request has not come through the gateway")
	}
	user, ok := s.guard().Value(r.Context(), j.Request, s.cfg.User)
	if !ok {
		return salehttp.Shopper{}, errNobody
	}
	shopper := salehttp.Shopper{User: user}
	if s.cfg.Device != "" {
		device, _ := s.guard().Value(r.Context(), j.Request, s.cfg.Device)
		shopper.Device = shortened(device)
	}
	return shopper, nil
}

// shortened is a device as order tokens can name it: one that is longer by its hash.
func shortened(device string) string {
	if len(device) <= flashsale.MaxUser {
		return device
	}
	sum := sha256.Sum256([]byte(device))
	return hex.EncodeToString(sum[:])
}

// unavailable answers a shopper who comes before the sale can begin.
func unavailable(w http.ResponseWriter, r *http.Request) {
	v := &httpverdict.Verdict{ID: httpverdict.NewID(), Binding: -1}
	if j, ok := gateway.JudgedOf(r.Context()); ok {
		v = j.Verdict
	}
	httpverdict.Write(w, r, v.Unserved(httpverdict.Unavailable, string(flashsale.CodeUnavailable), time.Second))
}
