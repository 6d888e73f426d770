package redisstore

import (
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"strings"
)

// The parts of the scripts. What each takes and returns stands at its head.
var (
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/limits.lua
	limitsLua string
	//go:embed lua/holders.lua
	holdersLua string
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
	take, refund, slots, inspect, reset *script
}

func newScripts() scripts {
	return scripts{
		take:    newScript("take", stateLua, limitsLua, holdersLua, takeLua),
		refund:  newScript("refund", stateLua, limitsLua, holdersLua, refundLua),
		slots:   newScript("slots", stateLua, limitsLua, holdersLua, slotsLua),
		inspect: newScript("inspect", inspectLua),
		reset:   newScript("reset", resetLua),
	}
}
