package salehttp

import "sync"

// streams counts the event streams that are open.
type streams struct {
	most, mostPerUser int
	mu                sync.Mutex
	all               int
	of                map[string]int
}

func newStreams(most, mostPerUser int) *streams {
	return &streams{most: most, mostPerUser: mostPerUser, of: map[string]int{}}
}

// enter takes a place, if there is one.
func (s *streams) enter(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.of[user] >= s.mostPerUser {
		return false
	}
	s.all++
	s.of[user]++
	return true
}

func (s *streams) leave(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[user]--; s.of[user] == 0 {
		delete(s.of, user)
	}
}
