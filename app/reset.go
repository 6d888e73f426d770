package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
)

// Resets travel as notes of the fleet, for as long as it takes until everybody has heard.
const (
	resetNote   = "reset/"
	resetLasts  = 30 * time.Second
	maxResetKey = 1024
)

// resetState is what a note of a reset says.
type resetState struct {
	Slot string `json:"slot"`
	// Key is any bytes; in JSON they are base64.
	Key []byte `json:"key"`
}

// Reset forgets the state of a slot's key: in the store, in this process, and in the others, which hear of it within seconds: what
// they know of its denials, have charged ahead for it or have counted in memory. A key longer than 1 kB is told to nobody else:
// they go on denying it for as long as they would have. While the store is lost it fails, and has forgotten only what is here.
func (g *Guard) Reset(ctx context.Context, slot, key string) error {
	if err := g.limiters.reset(ctx, slot, key); err != nil {
		return err
	}
	if g.cfg.Store.remote == nil || len(key) > maxResetKey {
		return nil
	}
	text, err := json.Marshal(resetState{slot, []byte(key)})
	if err != nil {
		return err
	}
	return g.fleet.Note(ctx, resetNote+rand.Text(), string(text), resetLasts)
}

// hear takes in a note of another process.
func (g *Guard) hear(name, value string) {
	var r resetState
	if !strings.HasPrefix(name, resetNote) || value == "" || json.Unmarshal([]byte(value), &r) != nil {
		return
	}
	g.limiters.forget(r.Slot, string(r.Key))
}
