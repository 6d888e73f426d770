package resilience

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// devicePieces is how many pieces the time has over which devices are counted. What is judged is the last so many whole ones.
	devicePieces = 6
	// deviceRing has one more, which is being written.
	deviceRing = devicePieces + 1
	// fewDevices is about the least number of devices that a share is judged by: among so few, two in fifty count as one now and then.
	fewDevices = 50
)

// devices counts the distinct devices of a sliding time, and those of them that the device layer alone has denied. It holds 112 kB
// whatever comes. add is lock-free; everything else is for one goroutine.
type devices struct {
	seed    uint64
	pieces  [deviceRing]devicePiece
	current atomic.Pointer[devicePiece]
	at      int       // index of current
	whole   int       // how many pieces before it are whole
	turn    time.Time // when the next piece begins
	every   time.Duration
}

type devicePiece struct{ seen, denied sketch }

// newDevices counts over a time from now on.
func newDevices(over time.Duration, now time.Time) *devices {
	d := &devices{seed: rand.Uint64()}
	d.restart(over, now)
	return d
}

// add notes a device. Hashes are mixed with a seed of this process: whoever chooses devices cannot choose what they count for.
func (d *devices) add(hash uint64, denied bool) {
	hash = mix(hash ^ d.seed)
	piece := d.current.Load()
	piece.seen.add(hash)
	if denied {
		piece.denied.add(hash)
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every bit depends on every bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// restart forgets all and counts over a time from now on.
func (d *devices) restart(over time.Duration, now time.Time) {
	for i := range d.pieces {
		d.pieces[i].clear()
	}
	d.every, d.whole = max(over/devicePieces, 1), 0
	d.turn = now.Add(d.every)
	d.current.Store(&d.pieces[d.at])
}

func (p *devicePiece) clear() {
	p.seen.clear()
	p.denied.clear()
}

// tick begins a new piece when it is time, and then reports what the last whole ones have seen. ok is false at any other time, and
// as long as there are too few of them. After a pause of the process there are none.
func (d *devices) tick(now time.Time) (c deviceCount, ok bool) {
	late := now.Sub(d.turn)
	switch {
	case late < 0:
		return c, false
	case late >= d.every*devicePieces:
		d.restart(d.every*devicePieces, now)
		return c, false
	}
	d.turn = d.turn.Add(d.every)
	d.at = (d.at + 1) % deviceRing
	d.pieces[d.at].clear()
	d.current.Store(&d.pieces[d.at])
	if d.whole = min(d.whole+1, devicePieces); d.whole < devicePieces {
		return c, false
	}
	return d.count(), true
}

// deviceCount is how many distinct devices were seen, and how many of them denied.
type deviceCount struct{ seen, denied float64 }

// count adds up the whole pieces.
func (d *devices) count() deviceCount {
	var seen, denied [devicePieces]*sketch
	for i := range devicePieces {
		piece := &d.pieces[(d.at+1+i)%deviceRing]
		seen[i], denied[i] = &piece.seen, &piece.denied
	}
	return deviceCount{seen: union(seen[:]...), denied: union(denied[:]...)}
}

// share is the part of the devices that was denied; ok is false if there were too few to tell.
func (c deviceCount) share() (share float64, ok bool) {
	if c.seen < fewDevices {
		return 0, false
	}
	return min(c.denied/c.seen, 1), true
}
