// Package mwtest is the suite that every HTTP front passes: middlewares and the gateway alike. It works over real
// connections, so that it sees what a client sees.
//
//	func TestConformance(t *testing.T) {
//		mwtest.Run(t, mwtest.Front{Start: func(t testing.TB, s mwtest.Setup) (string, error) {
//			limit, err := nethttpmw.New(s.Decider, nethttpmw.Config{MaxHeld: s.MaxHeld, Stale: s.Stale})
//			if err != nil {
//				return "", err
//			}
//			server := httptest.NewServer(limit(s.App))
//			t.Cleanup(server.Close)
//			return server.URL, nil
//		}})
//	}
//
// Only tests import it.
package mwtest

import (
	"net/http"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// Front is what is tested.
type Front struct {
	// Start serves an application behind the front and returns the base URL, such as "http://127.0.0.1:1234". What it
	// starts ends with the test. An error means that the front refuses the decider.
	Start func(t testing.TB, s Setup) (baseURL string, err error)
	// NoStreams says that the front's framework cannot flush a part of an answer.
	NoStreams bool
	// NoUpgrades says that the front's framework cannot hand out the connection.
	NoUpgrades bool
}

// Setup is what a front is started with.
type Setup struct {
	Decider httpverdict.Decider
	App     http.Handler
	// MaxHeld is how many requests the front may hold for a wait at a time.
	MaxHeld int
	// Stale keeps the answers.
	Stale *stale.Cache
}

// Run runs the suite.
func Run(t *testing.T, f Front) {
	t.Helper()
	for _, c := range []struct {
		name string
		skip bool
		run  func(*testing.T, *bench)
	}{
		{"the policy sees the request", false, testRequest},
		{"the handler sees the path that was judged", false, testJudgedPath},
		{"a path that cannot be judged is 400", false, testMalformedPath},
		{"an allowed request carries the headers", false, testAllowed},
		{"what caches share tells of no asker", false, testShared},
		{"denials", false, testDenials},
		{"a denied HEAD has no body", false, testDeniedHead},
		{"bodies pass unchanged", false, testBodies},
		{"Done tells status and bytes", false, testDone},
		{"Done is called when the handler panics", false, testDonePanic},
		{"Done is called when the client leaves", false, testDoneClientLeaves},
		{"Done is called once for each of many", false, testDoneMany},
		{"a wait is held", false, testWait},
		{"a client that leaves its wait is let go", false, testWaitLeave},
		{"waits are bounded", false, testWaitBound},
		{"answers stream", f.NoStreams, testStream},
		{"connections upgrade", f.NoUpgrades, testUpgrade},
		{"an unmet need is refused", false, testNeeds},
		{"the policy looks at the body", false, testPeek},
		{"a look can be repeated when all is over", false, testPeekAgain},
		{"a first look can come too late", false, testPeekTooLate},
		{"a look asks for the body", false, testPeekContinue},
		{"a look at a slow body ends in time", false, testPeekSlow},
		{"a slow body that is denied is not awaited", false, testPeekSlowDenied},
		{"a body that breaks off while it is looked at", false, testPeekBroken},
		{"marks are the policy's", false, testOver},
		{"Done tells header and bytes of the request", false, testResult},
		{"Done tells the header of a denial", false, testDeniedResult},
		{"a fallback is the answer", false, testFallback},
		{"a fallback is not in the way of an answer", false, testFallbackOfAllowed},
		{"a denial as a page", false, testTemplate},
		{"a denial in the client's language", false, testLanguages},
		{"a page for people while the service is restricted", false, testRestricted},
		{"a denial that a page of another origin reads", false, testOrigins},
		{"an old answer in place of a denial", false, testStale},
		{"answers that are not for others", false, testNotKept},
		{"half an answer is not kept", false, testBrokenIsNotKept},
		{"one of many asks the application", false, testCoalesce},
		{"an answer that is kept streams", f.NoStreams, testStaleStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.skip {
				t.Skip("the framework of this front cannot do it")
			}
			c.run(t, &bench{front: f})
		})
	}
}
