package replay

// sample keeps a value for each of a bounded number of keys. Up to the bound it has them all; beyond it keeps an even part
// of them, chosen by their hashes: half, a quarter, and so on. What is true of a part of the keys in the sample is true of the
// same part of all keys, within about 1/√(keys in the sample).
type sample[T any] struct {
	most  int
	level uint
	items map[uint64]T
}

func newSample[T any](most int) sample[T] { return sample[T]{most: most, items: map[uint64]T{}} }

// wants tells whether a key belongs to the sample.
func (s *sample[T]) wants(hash uint64) bool { return hash&(1<<s.level-1) == 0 }

// put sets the value of a key that the sample wants. Keys that have no place any more are dropped.
func (s *sample[T]) put(hash uint64, value T) {
	s.items[hash] = value
	for len(s.items) > s.most && s.level < 48 {
		s.level++
		for h := range s.items {
			if !s.wants(h) {
				delete(s.items, h)
			}
		}
	}
}

// scale turns a number of keys in the sample into one of all keys.
func (s *sample[T]) scale(n int) int64 { return int64(n) << s.level }

// whole tells that the sample has every key.
func (s *sample[T]) whole() bool { return s.level == 0 }

// hashText is a hash of a text, the same in every process, so that a log has one report. Its lowest bits are well mixed.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}
