package policy

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/memstore"
)

// TestWaitOutlivesReplacement: who waits under an engine that is replaced is before those who come to the new one, and there
// are no more of them in all than may.
func TestWaitOutlivesReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		const doc = preamble + "rules: [{name: r, limits: [token_bucket 1/s burst=1], on_deny: {action: wait, max_wait: 5s}}]"
		first := mustEngine(t, doc, store, EngineConfig{MaxWaiting: 3})
		second := mustEngine(t, doc+" # again", store, EngineConfig{MaxWaiting: 3, Before: first})
		start := time.Now()
		type end struct {
			n    int
			at   time.Duration
			said string
		}
		ends := make(chan end, 8)
		for n, e := range []*Engine{first, first, first, second, second} {
			go func() {
				v := e.Decide(t.Context(), request("GET /", "X-User-Id", "u"))
				ends <- end{n, time.Since(start).Round(time.Millisecond), strings.TrimSpace(v.Kind.String() + " " + v.Code)}
			}()
			synctest.Wait()
		}
		if n := second.Waiting(); n != 3 {
			t.Errorf("%d wait, want 3", n)
		}
		var got []end
		for range 5 {
			got = append(got, <-ends)
		}
		want := []end{{0, 0, "allow"}, {4, 0, "overloaded overloaded"}, {1, time.Second, "allow"}, {2, 2 * time.Second, "allow"}, {3, 3 * time.Second, "allow"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}
