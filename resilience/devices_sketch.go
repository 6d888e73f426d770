package resilience

import (
	"math"
	"math/bits"
	"sync/atomic"
)

const (
	// sketchBits makes 8192 registers: a standard error of 1.04/√8192 = 1.15 % of a number of devices, and of about 1.6 % of the
	// ratio of two. A share of 20 % is then told to 0.3 percentage points.
	sketchBits  = 13
	sketchSize  = 1 << sketchBits
	perWord     = 4 // registers of 8 bits in an atomic word
	maxRank     = 64 - sketchBits + 1
	sketchWords = sketchSize / perWord
)

// sketch counts distinct hashes: a HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) whose registers are atomic, so that any
// number of goroutines add to it without a lock. A hash that it has seen costs one load.
type sketch struct {
	words [sketchWords]atomic.Uint32
}

// add notes a hash. All of its bits must be equally likely.
func (s *sketch) add(hash uint64) {
	at := hash >> (64 - sketchBits)
	rank := uint32(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1)) + 1)
	word, shift := &s.words[at/perWord], at%perWord*8
	for {
		old := word.Load()
		if old>>shift&0xFF >= rank || word.CompareAndSwap(old, old&^(0xFF<<shift)|rank<<shift) {
			return
		}
	}
}

func (s *sketch) clear() {
	for i := range s.words {
		s.words[i].Store(0)
	}
}

// union estimates how many distinct hashes several sketches have seen together, by the improved raw estimator of Ertl ("New
// cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6), which needs no table and is true from none on.
func union(sketches ...*sketch) float64 {
	var ranks [maxRank + 1]float64
	for i := range sketches[0].words {
		var most [perWord]uint32
		for _, s := range sketches {
			word := s.words[i].Load()
			for j := range most {
				most[j] = max(most[j], word>>(8*j)&0xFF)
			}
		}
		for _, rank := range most {
			ranks[min(rank, maxRank)]++
		}
	}
	const m = float64(sketchSize)
	z := m * tau(1-ranks[maxRank]/m)
	for rank := maxRank - 1; rank >= 1; rank-- {
		z = (z + ranks[rank]) / 2
	}
	z += m * sigma(ranks[0]/m)
	return m * m / (2 * math.Ln2 * z)
}

// sigma is Ertl's σ: x + Σ x^(2^k)·2^(k-1), which makes up for the registers that are empty.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; y *= 2 {
		x *= x
		before := z
		if z += x * y; z == before {
			return z
		}
	}
}

// tau is Ertl's τ, which makes up for those that are full.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 0.5, 1-x; ; y /= 2 {
		x = math.Sqrt(x)
		before := z
		if z -= (1 - x) * (1 - x) * y; z == before {
			return z / 3
		}
	}
}
