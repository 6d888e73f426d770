package stale

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A service whose answers say all that they depend on, and a crowd of clients: whatever they get, it is what the service
// would have told them.

// truth is what the service answers to a request: it knows the user, and says in its header what it has looked at.
func truth(q *Query) (body string, h http.Header) {
	user, lang, auth := strings.TrimPrefix(q.Header.Get("Cookie"), "s="), q.Header.Get("Accept-Language"), q.Header.Get("Authorization")
	switch q.Path {
	case "/public":
		return "public", fields("Cache-Control", "public")
	case "/lang":
		return "lang " + lang, fields("Vary", "Accept-Language")
	case "/mine":
		return "mine " + user, fields("Cache-Control", "private")
	case "/mine-in":
		return "mine " + user + " in " + lang, fields("Cache-Control", "private, max-age=1", "Vary", "accept-language")
	case "/auth":
		return "auth " + auth, fields() // says nothing: by HTTP's rules it is not for others if the request was authorized
	case "/session":
		return "session " + user, fields("Set-Cookie", "s="+user)
	default:
		return "secret " + user, fields("Cache-Control", "no-store")
	}
}

var paths = []string{"/public", "/lang", "/mine", "/mine-in", "/auth", "/session", "/secret"}

// randomQuery is a request of one of a few users, under a rule for everybody, by user or by address.
func randomQuery(random *rand.Rand) *Query {
	user := fmt.Sprint("u", random.IntN(4))
	q := ask(paths[random.IntN(len(paths))], "", "Cookie", "s="+user)
	switch random.IntN(3) {
	case 0:
		q.Stale.Identity = "user=" + user
	case 1:
		q.Stale.Identity = "ip=192.0.2.1" // of all of them
	}
	if random.IntN(2) == 0 {
		q.Header.Set("Authorization", "Bearer "+user)
	}
	if random.IntN(3) > 0 {
		q.Header.Set("Accept-Language", []string{"en", "zh"}[random.IntN(2)])
	}
	return q
}

func TestNobodyGetsAnothersAnswer(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 40 << 10}) // so small that answers come and go
	var given sync.Map
	var crowd sync.WaitGroup
	for i := range 16 {
		crowd.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for range 2000 {
				q := randomQuery(random)
				want, h := truth(q)
				a, how := cache.Kept(q), "kept"
				if random.IntN(3) > 0 {
					var k *Keeping
					if a, k = cache.Join(t.Context(), q); k != nil {
						if k.Header(200, h) {
							for part := range strings.SplitAfterSeq(want, " ") {
								k.Write([]byte(part))
							}
						}
						k.End(random.IntN(10) > 0)
					}
					how = "joined"
				}
				if a == nil {
					continue
				}
				given.Store(q.Path, true)
				if body := got(a, q).Body.String(); body != want {
					t.Errorf("%s %s of %q with %v got %q, want %q", how, q.Path, q.Stale.Identity, q.Header, body, want)
				}
			}
		})
	}
	crowd.Wait()
	for _, path := range paths {
		_, was := given.Load(path)
		if want := path != "/session" && path != "/secret"; was != want {
			t.Errorf("%s was given again: %t, want %t", path, was, want)
		}
	}
	if s := cache.Stats(); s.Leading != 0 || s.Waiting != 0 || s.Bytes > 40<<10 {
		t.Errorf("stats %+v", s)
	}
}
