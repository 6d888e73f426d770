package redisstore

// KeyOf returns the key under which a store keeps a state.
func KeyOf(s *Store, slot, key string) string { return s.names.name(keyState, slot, key) }
