-- pace.lua is the meter of pull.lua, and what a change of the rate does to it: a token bucket over all consumers of a sku, which holds a
-- tenth of a second's worth of jobs, or one where that is less. A job is 1e6 units, and a rate of one job a second earns a unit in a
-- microsecond, so that nothing is ever rounded.

local function burst(rate) return math.max(math.floor(rate / 10), 1) * 1000000 end

-- fill returns the level now. A clock that has gone back earns nothing.
local function fill(rate, level, filled)
  local passed = now - filled
  if passed >= 1000000 and rate > 0 then return burst(rate) end
  if passed > 0 then return math.min(level + passed * rate, burst(rate)) end
  return level
end

-- setRate puts a rate in force. What was earned is kept as far as the new bucket holds it; the first rate starts full.
local function setRate(was, rate, level, filled)
  if was == 0 then level = burst(rate) else level = math.min(fill(was, level, filled), burst(rate)) end
  call('HSET', STOCK, 'rate', rate, 'next', 0, 'level', level, 'filled', now)
end

-- lowerRate lets a lower rate that waits take effect, once the queue fits it.
local function lowerRate(depth, rate, waits, level, filled)
  if waits ~= 0 and depth <= waits * 45 then setRate(rate, waits, level, filled) end
end
