package redisstore

// KeyOf returns the key under which a store keeps a state.
func KeyOf(s *Store, slot, key string) string { return s.names.name(keyState, slot, key) }

// WithoutShortcut makes a store send lone takes as batches of one.
func WithoutShortcut(s *Store) *Store {
	s.scripts.one = nil
	return s
}
