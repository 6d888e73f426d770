package app

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/replay"
)

// replayKeys is how many keys a replayed policy may have at a time, about 120 MB of them.
const replayKeys = 1_000_000

// ReplayPolicy is a policy that is ready to be replayed, on a store of its own in memory.
type ReplayPolicy struct {
	replay.Policy
	store *memstore.Store
	// forgetAt is the number of keys at which it is worth a look for idle ones.
	forgetAt int
}

// OpenReplay loads the policy in a file to be replayed. Its errors are those of [LoadPolicy]. It must be closed.
func OpenReplay(file string) (*ReplayPolicy, error) {
	p, err := LoadPolicy(file)
	if err != nil {
		return nil, err
	}
	r := &ReplayPolicy{forgetAt: replayKeys / 4, store: memstore.New(memstore.Config{
		MaxKeys: replayKeys, MaxKeysPerSlot: replayKeys, SweepInterval: -1, Logger: slog.New(slog.DiscardHandler),
	})}
	engine, err := policy.NewEngine(p, r.store, policy.EngineConfig{
		Explain: true, MarkKey: []byte(rand.Text()),
		// A replay asks nobody: what the log does not say of a dimension has its default.
		Lookups: policy.Lookups{HashField: nothingFound, HTTPGet: nothingFound},
	})
	if err != nil {
		_ = r.store.Close() // nothing runs in it
		return nil, err
	}
	r.Policy = replay.Policy{
		Name: file, Decider: engine, Rules: replayRules(p.Rules()), Forget: r.forget,
		Overflowed: func() uint64 { return r.store.Stats().Overflowed }, Unlogged: unlogged(p.Dimensions()),
	}
	for _, w := range p.Warnings() {
		r.Policy.Notes = append(r.Policy.Notes, w.Message)
	}
	return r, nil
}

// Close gives back the store.
func (r *ReplayPolicy) Close() error { return r.store.Close() }

// forget makes room when there is need for it: looking at every key takes a while.
func (r *ReplayPolicy) forget(now time.Time) {
	if r.store.Stats().Keys < r.forgetAt {
		return
	}
	if _, err := r.store.Forget(now); err != nil {
		return // a time at which nothing is judged either
	}
	left := r.store.Stats().Keys
	r.forgetAt = min(max(replayKeys/4, left+left/4), replayKeys-replayKeys/16)
}

// unlogged returns the dimensions that access logs do not have by themselves.
func unlogged(dimensions []policy.Dimension) map[string]replay.Unlogged {
	found := map[string]replay.Unlogged{}
	for _, d := range dimensions {
		if from := sourceText(&d); from != "" {
			u := replay.Unlogged{From: from, Header: d.Header}
			switch {
			case d.Source == "cookie" || slices.Contains(d.Inputs, "cookies"):
				u.Header = "Cookie"
			case d.Source == "cel":
				u.Needs = d.Needs
			}
			found[d.Name] = u
		}
	}
	return found
}

func sourceText(d *policy.Dimension) string {
	switch d.Source {
	case "header":
		if d.Header == "" {
			return "a header of a trusted proxy"
		}
		return "a header"
	case "cookie":
		return "a cookie"
	case "json":
		return "the body"
	case "jwt":
		return "a token"
	case "redis", "http":
		return "a look-up"
	case "cel":
		switch {
		case slices.Contains(d.Inputs, "cookies"):
			return "an expression over cookies"
		case len(d.Needs) > 0:
			return "an expression over " + strings.Join(d.Needs, ", ")
		}
	}
	return ""
}

func replayRules(rules []policy.Rule) []replay.RuleInfo {
	infos := make([]replay.RuleInfo, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		infos = append(infos, replay.RuleInfo{
			Name: r.Name, Mode: string(r.Mode), Keyed: len(r.Key) > 0, KeyDimensions: r.KeyDimensions, Limits: r.Limits, Settled: r.Settled,
			UnitCostMicros: r.UnitCost.Micros, Currency: r.UnitCost.Currency,
		})
	}
	return infos
}
