package nethttpmw_test

import (
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/middleware/mwtest"
	"github.com/headgate-io/headgate/middleware/nethttpmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	mwtest.Run(t, mwtest.Front{Start: func(t testing.TB, s mwtest.Setup) (string, error) {
		limit, err := nethttpmw.New(s.Decider, nethttpmw.Config{MaxHeld: s.MaxHeld, Stale: s.Stale})
		if err != nil {
			return "", err
		}
		server := httptest.NewServer(limit(s.App))
		t.Cleanup(server.Close)
		return server.URL, nil
	}})
}
