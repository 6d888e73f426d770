package redisstock

import (
	_ "embed" // the scripts
	"strings"

	"github.com/redis/rueidis"
)

// The parts of the scripts. What each takes and returns stands at its head.
var (
	//go:embed lua/head.lua
	headLua string
	//go:embed lua/pace.lua
	paceLua string
	//go:embed lua/reserve.lua
	reserveLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/adjust.lua
	adjustLua string
	//go:embed lua/configure.lua
	configureLua string
	//go:embed lua/find.lua
	findLua string
	//go:embed lua/holds.lua
	holdsLua string
	//go:embed lua/entries.lua
	entriesLua string
	//go:embed lua/due.lua
	dueLua string
	//go:embed lua/forget.lua
	forgetLua string
	//go:embed lua/lull.lua
	lullLua string
	//go:embed lua/view.lua
	viewLua string
	//go:embed lua/pull.lua
	pullLua string
	//go:embed lua/bury.lua
	buryLua string
	//go:embed lua/dead.lua
	deadLua string
	//go:embed lua/revive.lua
	reviveLua string
	//go:embed lua/point.lua
	pointLua string
	//go:embed lua/load.lua
	loadLua string
	//go:embed lua/drain.lua
	drainLua string
	//go:embed lua/drop.lua
	dropLua string
	//go:embed lua/remove.lua
	removeLua string
	//go:embed lua/refuse.lua
	refuseLua string
	//go:embed lua/refused.lua
	refusedLua string
)

// scripts are what Redis runs: sent by their SHA-1, and whole when Redis does not know them.
type scripts struct {
	reserve, apply, adjust, configure, find, holds, entries, due, forget, lull, view, pull, bury, dead, revive, point, load, drain, drop, remove, refuse, refused *rueidis.Lua
}

func newScripts() scripts {
	script := func(parts ...string) *rueidis.Lua { return rueidis.NewLuaScript(strings.Join(parts, "\n")) }
	plain := func(own string) *rueidis.Lua { return script(headLua, own) }
	paced := func(own string) *rueidis.Lua { return script(headLua, paceLua, own) }
	return scripts{
		reserve: plain(reserveLua), apply: paced(applyLua), adjust: plain(adjustLua), configure: paced(configureLua),
		find: plain(findLua), holds: plain(holdsLua), entries: plain(entriesLua), due: plain(dueLua), forget: plain(forgetLua), lull: plain(lullLua), view: plain(viewLua),
		pull: paced(pullLua), bury: paced(buryLua), dead: plain(deadLua), revive: plain(reviveLua),
		point: script(pointLua), load: paced(loadLua), drain: plain(drainLua), drop: plain(dropLua),
		remove: script(removeLua), refuse: script(refuseLua), refused: script(refusedLua),
	}
}
