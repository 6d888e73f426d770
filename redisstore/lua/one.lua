-- one.lua decides a take of one plain charge that is alone in its call: what take.lua would do, in half the time.
--
-- KEYS     1 the state.
-- ARGV[1]  see head.lua, with one spec and nothing after it.
--
-- Returns what take.lua returns.

local p = {sunpack(SPEC[byte(a, pos)], a, pos)}
local kind, cost = p[1], p[3]
local s = redis.pcall('GET', K[1])
if type(s) == 'table' then
  if sub(s.err, 1, 9) ~= 'WRONGTYPE' then return s end -- an error, such as of a missing right
  s = false -- of another type: as if never seen
end
local x, y, z, dirty, fits, found, old = look[kind](p, s)
if kind == 4 and not x then return spack('<i8HB', now, unknown, 32) end
local pays = fits and cost > 0 and p[2] == 0
if cost > 0 and (pays or dirty) then
  local state, due = pay[kind](p, pays and cost or 0, x, y, z)
  if not state then
    call('DEL', K[1])
  else
    due = due + -due % 1000000 -- as in states.lua
    if old and old > due - 1000000 and #state == #s and timed == 0 then
      call('SETRANGE', K[1], '0', state)
    else
      due = max(1000000 + due - now, timed == 1 and 3600e6 or 1000)
      call('SET', K[1], state, 'PX', format('%.0f', ceil(due / 1000)))
    end
  end
end
return spack('<i8HBc0', now, unknown, (pays and 5 or cost == 0 and 1 or 0) + (found and 2 or 0), found or '')
