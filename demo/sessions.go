package demo

import (
	"crypto/rand"
	"strings"
	"sync"
)

const (
	sessionCookie = "shop_session"
	guestAccount  = "guest-"
	maxGuests     = 1000
)

// sessions are the persons who have signed in at the shop's page. Each is a guest under a name that the shop has made: nobody can sign in
// as somebody of the crowd, or as another guest. What the cookie holds is random, and means something to the shop alone.
type sessions struct {
	mu sync.Mutex
	of map[string]string // user by the cookie's value
}

// begin signs a new guest in; ok is false when there are too many.
func (s *sessions) begin() (cookie, user string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]string)
	}
	if len(s.of) >= maxGuests {
		return "", "", false
	}
	cookie, user = rand.Text(), guestAccount+strings.ToLower(rand.Text()[:8])
	s.of[cookie] = user
	return cookie, user, true
}

// end signs a guest out.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, cookie)
}

// user is who has a cookie, "" if nobody does.
func (s *sessions) user(cookie string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[cookie]
}
