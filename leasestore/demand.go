package leasestore

import "time"

// demand tells how many units a key was asked for in the last moments. It is guarded by the holding's lock.
//
// An instance charges no more ahead than it was asked for within the last such time: so one that is not asked holds
// nothing, and one where the load begins doubles what it holds with every call until it has enough.
type demand struct {
	begun  int64   // when the current stretch began
	before int64   // the units asked for in all, at that moment
	last   float64 // units per stretch in the one before
}

// recent returns how many units were asked for within the last stretch of time; total is how many in all until now.
func (d *demand) recent(now, total int64, stretch time.Duration) int64 {
	since := now - d.begun
	if since >= int64(stretch) {
		d.last = float64(max(0, total-d.before)) * float64(stretch) / float64(since)
		d.begun, d.before, since = now, total, 0
	}
	return int64(d.last*(1-float64(since)/float64(stretch))) + max(0, total-d.before)
}
