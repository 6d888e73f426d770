package metrics

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// SaleView counts what the engine of a flash sale does. Keys are "sale/sku", "" where there is none.
type SaleView struct {
	used       atomic.Bool
	skus       *skus
	reserving  *histo
	age        *histo // of what was decided
	batchTime  *histo
	batchJobs  *histo
	repeats    count
	payments   [len(payOutcomes)]count
	rejections *table[string, count]
	refunds    *table[string, count]
	rebuilds   *table[string, count]
	rebuilding *histo
	jobs       *table[string, saleJob]
	workers    atomic.Int64
	alarms     *saleAlarms
	// refusals are those that were written and dropped, refusalTries the tries by code.
	refusals     [2]count
	refusalTries *table[string, count]
}

const (
	refusalsWritten = iota
	refusalsDropped
)

// saleJob is what is counted of one of the engine's jobs.
type saleJob struct {
	passes *table[string, count] // by code
	did    count
	took   *histo
	leads  atomic.Bool
}

// Bounds of what is told apart.
const (
	maxJobs   = 32
	maxAlarms = 4096
)

// transitions are those of docs/flashsale.md that an engine tells of; what is called otherwise is counted as the last.
var transitions = [...]string{"T1", "T1'", "T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T9", other}

// payOutcomes are what can become of payments.
var payOutcomes = [...]string{"begun", "captured", "not_captured", "refunded"}

const (
	payBegun = iota
	payCaptured
	payNot
	payRefunded
)

var saleBounds = []int64{1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000,
	1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000, 45_000_000_000, 90_000_000_000}

var batchBounds = []int64{1, 4, 16, 64, 128, 256, 512, 1000}

func newSaleView(most int) SaleView {
	return SaleView{
		skus: newSKUs(most), reserving: newHisto(decisionBounds), age: newHisto(saleBounds), batchTime: newHisto(saleBounds), batchJobs: newHisto(batchBounds),
		rejections: newCounts[string](maxCodes), refunds: newCounts[string](maxCodes), rebuilds: newCounts[string](maxCodes), rebuilding: newHisto(saleBounds),
		jobs: newTable[string](maxJobs, func() *saleJob {
			return &saleJob{passes: newCounts[string](maxCodes), took: newHisto(saleBounds)}
		}),
		refusalTries: newCounts[string](maxCodes),
		alarms:       &saleAlarms{on: map[saleAlarm]float64{}, times: newCounts[string](maxCodes)},
	}
}

func (v *SaleView) use() {
	if !v.used.Load() { // a line that all read is written once
		v.used.Store(true)
	}
}

// Reserved counts a reserve call: "accepted", "known", or the code of the refusal or error.
func (v *SaleView) Reserved(sku, outcome string, took time.Duration) {
	v.use()
	v.skus.of(sku).reserves.of(outcome).add(1)
	v.reserving.observe(positive(took), chance(took))
}

// Moved counts a transition of so many units, by its name in the table of states. The reason is counted where it is one of a few: of
// rejections and refunds.
func (v *SaleView) Moved(sku, transition, reason string, quantity int64) {
	v.use()
	moved := &v.skus.of(sku).moved[transitionOf(transition)]
	moved.times.Add(1)
	moved.units.Add(uint64(max(0, quantity)))
	switch transition {
	case "T1'", "T2":
		v.rejections.of(reason).add(1)
	case "T3":
		v.payments[payBegun].add(1)
	case "T3b", "T7":
		v.payments[payNot].add(1)
	case "T4", "T8":
		v.payments[payCaptured].add(1)
	case "T9":
		v.payments[payRefunded].add(1)
		v.refunds.of(reason).add(1)
	}
}

func transitionOf(name string) int {
	for i, known := range transitions[:len(transitions)-1] {
		if known == name {
			return i
		}
	}
	return len(transitions) - 1
}

// Batch counts a batch of T1: how many jobs it decided, how often it was repeated, the time of its transaction, and the age of its oldest
// job, which stands for all of them.
func (v *SaleView) Batch(_ string, jobs, retries int, took, oldest time.Duration) {
	v.use()
	c := chance(took)
	v.batchTime.observe(positive(took), c)
	v.batchJobs.observe(int64(max(0, jobs)), c)
	v.age.observeEach(positive(oldest), uint64(max(0, jobs)), c)
	v.repeats.add(uint64(max(0, retries)))
}

// Backlog takes the figures of a queue.
//
//nolint:revive // its arguments are those of the engine's observer
func (v *SaleView) Backlog(sku string, depth, pulled, dead, pending int64, oldest time.Duration) {
	v.use()
	s := v.skus.of(sku)
	s.queue.Store(&queueFigures{depth: depth, pulled: pulled, dead: dead, pending: pending, oldest: oldest})
	s.told.Store(v.skus.now().UnixNano())
}

// Workers takes how many consumers there are.
func (v *SaleView) Workers(n int, _ string) {
	v.use()
	v.workers.Store(int64(n))
}

// Alarm takes that an alarm goes on or off.
func (v *SaleView) Alarm(kind, sku string, on bool, value float64, _ string) {
	v.use()
	v.alarms.step(saleAlarm{kind, sku}, on, value)
}

// Job counts a pass of a job: its name, what it did, and its error's code, "" for none.
func (v *SaleView) Job(name string, did int, took time.Duration, code string) {
	v.use()
	j := v.jobs.of(name)
	j.passes.of(code).add(1)
	j.did.add(uint64(max(0, did)))
	j.took.observe(positive(took), chance(took))
}

// Leased takes that this instance has got, or lost, the lease of a job.
func (v *SaleView) Leased(name string, held bool) {
	v.use()
	v.jobs.of(name).leads.Store(held)
}

// Rebuilt counts a rebuild of the stock of a sku, with its new epoch and its error's code, "" for none.
func (v *SaleView) Rebuilt(sku string, epoch int64, took time.Duration, code string) {
	v.use()
	v.rebuilds.of(code).add(1)
	v.rebuilding.observe(positive(took), chance(took))
	if code == "" {
		v.skus.of(sku).epoch.Store(epoch)
	}
}

// RefusalsWritten counts a try to write refusals to where all instances read them, and those that were dropped before.
func (v *SaleView) RefusalsWritten(refusals, dropped int64, code string) {
	v.use()
	v.refusalTries.of(code).add(1)
	v.refusals[refusalsWritten].add(uint64(max(0, refusals)))
	v.refusals[refusalsDropped].add(uint64(max(0, dropped)))
}

// saleAlarm is an alarm of a sku, or of all.
type saleAlarm struct{ kind, sku string }

// saleAlarms are those that are on, with their values.
type saleAlarms struct {
	times *table[string, count] // how often each kind went on
	mu    sync.Mutex
	on    map[saleAlarm]float64 // guarded by mu; at most maxAlarms
}

func (a *saleAlarms) step(id saleAlarm, on bool, value float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, was := a.on[id]
	switch {
	case !on:
		delete(a.on, id)
	case was || len(a.on) < maxAlarms:
		a.on[id] = value
	}
	if on && !was {
		a.times.of(id.kind).add(1)
	}
}

// now returns a copy of those that are on.
func (a *saleAlarms) now() map[saleAlarm]float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	on := make(map[saleAlarm]float64, len(a.on))
	for id, value := range a.on {
		on[id] = value
	}
	return on
}

// saleAndSKU are the labels of a key.
func saleAndSKU(key string) (sale, sku string) {
	if key == other {
		return other, other
	}
	sale, sku, _ = strings.Cut(key, "/")
	return orNone(sale), orNone(sku)
}
