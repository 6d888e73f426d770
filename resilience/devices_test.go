package resilience

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestSketchError: from one device to a million the count is right within about 1.15 % (the standard error of that many registers), and
// never wrong by more than five times that. The draws are the same in each run: a bound in standard errors is passed by chance now and
// then, and that is no fault.
func TestSketchError(t *testing.T) {
	t.Parallel()
	const standard = 0.0115
	for _, c := range []struct{ n, draws int }{{0, 1}, {1, 50}, {10, 50}, {50, 50}, {1000, 50}, {8192, 20}, {20_000, 20}, {40_000, 20}, {1_000_000, 5}} {
		squares := 0.0
		for draw := range c.draws {
			random := rand.New(rand.NewPCG(uint64(draw), uint64(c.n)))
			s := &sketch{}
			for range c.n {
				s.add(random.Uint64())
			}
			diff := union(s) - float64(c.n)
			squares += diff * diff
			if math.Abs(diff) > 0.5+5*standard*float64(c.n) {
				t.Errorf("%d distinct, draw %d: counted %.1f", c.n, draw, union(s))
			}
		}
		if rms := math.Sqrt(squares / float64(c.draws)); rms > 0.2+1.5*standard*float64(c.n) {
			t.Errorf("%d distinct: wrong by %.2f as a rule", c.n, rms)
		}
	}
}

func TestSketchExtremes(t *testing.T) {
	t.Parallel()
	s := &sketch{}
	s.add(0)              // the highest rank
	s.add(math.MaxUint64) // the last register
	s.add(0)
	if got := math.Round(union(s)); got != 2 {
		t.Errorf("two hashes count %v", got)
	}
	if rank := s.words[0].Load() & 0xFF; rank != maxRank {
		t.Errorf("hash 0 has rank %d, want %d", rank, maxRank)
	}
	s.clear()
	if got := union(s); got != 0 {
		t.Errorf("an empty sketch counts %v", got)
	}
}

// TestSketchConcurrent: whoever writes at the same time loses nothing.
func TestSketchConcurrent(t *testing.T) {
	t.Parallel()
	together, alone := &sketch{}, &sketch{}
	var wg sync.WaitGroup
	for g := range uint64(8) {
		for i := range uint64(20_000) {
			alone.add(mix(g<<32 | i))
		}
		wg.Go(func() {
			for i := range uint64(20_000) {
				together.add(mix(g<<32 | i))
			}
		})
	}
	wg.Wait()
	for i := range alone.words {
		if a, b := alone.words[i].Load(), together.words[i].Load(); a != b {
			t.Fatalf("word %d: %x alone, %x together", i, a, b)
		}
	}
}

// TestDeviceShare: 18 % never trips a threshold of 20 %, and 23 % always does, with devices that come again and again in every piece
// and are denied once.
func TestDeviceShare(t *testing.T) {
	t.Parallel()
	for _, n := range []int{60, 100, 1000, 10_000, 60_000, 300_000} {
		for _, percent := range []int{18, 23} {
			t.Run(fmt.Sprintf("%d devices %d%%", n, percent), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(n), uint64(percent)))
				for range max(1, min(20, 600_000/n)) {
					if share := shareOf(t, n, percent, random); (share > 0.2) != (percent > 20) {
						t.Errorf("counted %.2f%%", share*100)
					}
				}
			})
		}
	}
}

func shareOf(t *testing.T, n, percent int, random *rand.Rand) float64 {
	t.Helper()
	now := time.Now()
	d := newDevices(time.Minute, now)
	d.seed = random.Uint64()
	first := random.Uint64()
	for piece := range devicePieces {
		for i := range n {
			hash := first + uint64(i) // hashes of the caller need not be good
			if i%2 == piece%2 || i%devicePieces == piece {
				d.add(hash, false)
			}
			if i%devicePieces == piece && i*100 < n*percent {
				d.add(hash, true)
			}
		}
		now = now.Add(10 * time.Second)
		if c, ok := d.tick(now); ok != (piece == devicePieces-1) {
			t.Fatalf("judged after %d pieces: %t", piece+1, ok)
		} else if ok {
			share, _ := c.share()
			return share
		}
	}
	return -1
}

// TestDevicesSlide: what is older than the time over which devices are counted does not count, and too few are not judged.
func TestDevicesSlide(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := newDevices(time.Minute, now)
	d.seed = 1 // a hundred in eight thousand registers: with one seed in a hundred four of them share one with another
	pass := func(devices int, denied bool) (deviceCount, bool) {
		for i := range devices {
			d.add(uint64(i), denied)
		}
		now = now.Add(10 * time.Second)
		return d.tick(now)
	}
	for range 5 {
		if _, ok := pass(100, true); ok {
			t.Fatal("judged before a minute was over")
		}
	}
	if c, ok := pass(100, true); !ok || math.Abs(c.seen-100) > 3 || c.denied != c.seen {
		t.Errorf("after a minute: %+v %t", c, ok)
	}
	if _, ok := d.tick(now.Add(time.Second)); ok {
		t.Error("judged in the middle of a piece")
	}
	for range 5 {
		pass(100, false)
	}
	if c, _ := pass(100, false); math.Abs(c.seen-100) > 3 || c.denied != 0 {
		t.Errorf("after another minute: %+v", c)
	}
	for range 6 {
		pass(40, true)
	}
	c, ok := pass(40, true)
	if share, enough := c.share(); !ok || enough {
		t.Errorf("%+v is judged: %v", c, share)
	}
	now = now.Add(2 * time.Minute)
	if _, ok := d.tick(now); ok {
		t.Error("judged after the process has stood still")
	}
}

func TestDeviceAddAllocates(t *testing.T) {
	d := newDevices(time.Minute, time.Now())
	i := uint64(0)
	if n := testing.AllocsPerRun(1000, func() { i++; d.add(i, i%2 == 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDevice(b *testing.B) {
	d := newDevices(time.Minute, time.Now())
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.Uint64(); pb.Next(); i++ {
			d.add(i%100_000, i%5 == 0)
		}
	})
}
