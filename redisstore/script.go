package redisstore

import (
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"strings"
)

// The parts of the scripts. What each takes and returns stands at its head.
var (
	//go:embed lua/head.lua
	headLua string
	//go:embed lua/states.lua
	statesLua string
	//go:embed lua/exact.lua
	exactLua string
	//go:embed lua/limits.lua
	limitsLua string
	//go:embed lua/holders.lua
	holdersLua string
	//go:embed lua/one.lua
	oneLua string
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/refund.lua
	refundLua string
	//go:embed lua/slots.lua
	slotsLua string
	//go:embed lua/inspect.lua
	inspectLua string
	//go:embed lua/reset.lua
	resetLua string
	//go:embed lua/fleet.lua
	fleetLua string
)

// script is a text that Redis runs, and the name that Redis knows it by.
type script struct {
	name, text, sha string
}

func newScript(name string, parts ...string) *script {
	text := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(text)) // Redis names scripts by it
	return &script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

type scripts struct {
	take, one, refund, slots, inspect, reset, fleet *script
}

func newScripts() scripts {
	onStates := func(name, own string) *script {
		return newScript(name, headLua, statesLua, exactLua, limitsLua, holdersLua, own)
	}
	return scripts{
		take:    onStates("take", takeLua),
		one:     newScript("take", headLua, exactLua, limitsLua, oneLua),
		refund:  onStates("refund", refundLua),
		slots:   onStates("slots", slotsLua),
		inspect: newScript("inspect", inspectLua),
		reset:   newScript("reset", resetLua),
		fleet:   newScript("fleet", fleetLua),
	}
}
