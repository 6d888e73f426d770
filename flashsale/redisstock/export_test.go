package redisstock

// Waiting returns how many reserve calls wait to be sent, and how many calls of reserves are on the wire.
func (s *Stock) Waiting() (queued, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		inFlight += l.inFlight
	}
	return s.queued, inFlight
}
