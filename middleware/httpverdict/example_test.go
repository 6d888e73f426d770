package httpverdict_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func ExampleWrite() {
	v := &httpverdict.Verdict{
		Kind: httpverdict.Limited, ID: "2k7vq0d5n8x1c", Rule: "login", Code: "limited",
		Limits: []httpverdict.LimitReport{{Name: "login", Limit: headgate.MustParseLimit("sliding_log 5/5m"), Outcome: headgate.Outcome{
			Reason: headgate.ReasonLimited, HasRemaining: true, ResetAfter: 5 * time.Minute, RetryAfter: headgate.Retry{After: 11500 * time.Millisecond},
		}}},
		RetryAfter: headgate.Retry{After: 11500 * time.Millisecond},
	}
	w := httptest.NewRecorder()
	httpverdict.Write(w, httptest.NewRequest(http.MethodPost, "/login", nil), v)
	fmt.Println(w.Code)
	for _, name := range []string{"Retry-After", "RateLimit-Policy", "RateLimit", "Headgate-Id", "Content-Type"} {
		fmt.Printf("%s: %s\n", name, w.Header().Get(name))
	}
	// Output:
	// 429
	// Retry-After: 12
	// RateLimit-Policy: "login";q=5;w=300
	// RateLimit: "login";r=0;t=12
	// Headgate-Id: 2k7vq0d5n8x1c
	// Content-Type: application/problem+json
}

// An application asks for a payment password when its rule says that the amounts of the day have come to too much.
func ExampleVerifyOverRequest() {
	key, now := []byte("sixteen bytes or more"), time.Unix(1_767_225_600, 0)
	r := httptest.NewRequest(http.MethodPost, "http://shop.example/pay", nil)
	r.Header.Set(httpverdict.HeaderOver, httpverdict.SignOver(key, httpverdict.OverMark{ // as a policy does
		Rules: []string{"pay-amount"}, ID: "2k7vq0d5n8x1c", At: now, Method: r.Method, Host: "shop.example", Path: "/pay",
	}))

	mark, err := httpverdict.VerifyOverRequest(key, r, now, time.Minute)
	fmt.Println(mark.Rules, err)

	r.URL.Path = "/refund" // a mark is worth nothing on another request
	_, err = httpverdict.VerifyOverRequest(key, r, now, time.Minute)
	fmt.Println(err)
	// Output:
	// [pay-amount] <nil>
	// the mark is not valid: the signature is not of this key and request
}
