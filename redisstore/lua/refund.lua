-- refund.lua gives back what takes charged, as far as it is still in time.
--
-- KEYS, ARGV[1]: see head.lua. A spec's cost is the units to give back. After the specs, for each charge (takes is their
-- number): spec B, key H, mark i7; if it is a concurrency limit: index of its sets H, holder: length B, bytes.
--
-- Returns now i8, states of an unknown format H, then a byte for each charge: 1 given back, 0 too late and nothing was written, 32 the
-- clocks differ too far for a calendar, 64 a key is of a foreign type. If any is 32 or 64, nothing was given back.

local P = {}
for i = 1, specs do
  P[i] = {sunpack(SPEC[byte(a, pos)], a, pos)}
  pos = P[i][#P[i]]
end

-- back has, by kind, what moves a state back: it returns whether that was in time, and the state as pay takes it.
local back = {}

local function meter(p, d, frac, mark, inc, incFrac, den)
  if now >= mark or (d == 0 and frac == 0) then return false end
  if d < inc or (d == inc and frac <= incFrac) then return true, 0, 0 end
  d, frac = d - inc, frac - incFrac
  if frac < 0 then d, frac = d - 1, frac + den end
  return true, d, frac
end
back[1] = function(p, mark, d) return meter(p, d, 0, mark, p[5], 0, 1) end
back[2] = function(p, mark, d, frac) return meter(p, d, frac, mark, p[5], p[6], p[11]) end
back[7] = function(p, mark, d, frac, last)
  local ok, x, y = meter(p, d, frac, mark, p[5], p[6], p[12])
  return ok, x, y, last
end

back[3] = function(p, mark, start, stop, count)
  if start ~= mark or count == 0 then return false end
  return true, start, stop, max(0, count - p[3])
end
back[4] = back[3]

back[5] = function(p, mark, s, from, eff)
  if mark <= eff - p[6] or from > #s then return false end
  local first, past = after(s, mark - 1), after(s, mark)
  local n = min(p[3], (past - first) / 7)
  return true, sub(s, 1, first - 1) .. sub(s, first + 7 * n), from, eff
end

back[6] = function(p, mark, v, start)
  local i, any = (start - mark) / p[6] + 1, false
  for j = 1, p[7] + 1 do any = any or (v[j] or 0) > 0 end
  if not any or i < 1 or i > p[7] + 1 or i ~= floor(i) then return false end -- of cells of another length: none of these
  if v[i] then v[i] = max(0, v[i] - p[3]) end
  return true, v, start
end

local charges, bad = {}, 0
for i = 1, takes do
  local spec, k, mark, set, holder
  spec, k, mark, pos = sunpack('<BHi7', a, pos)
  local p = P[spec]
  local c = {p = p, k = k, late = true}
  local kind = p[1]
  if kind == 8 then
    set, holder, pos = sunpack('<HBc0', a, pos)
    local h = lookHolders(p, S[k], set, holder)
    if h then
      c.x, c.late = h, not h.own
    else
      bad = 64
    end
  elseif kind ~= 9 then
    local x, y, z, _, _, s, old = look[kind](p, S[k])
    if kind == 4 and x == nil then
      bad = max(bad, 32)
    elseif s then
      local ok
      ok, c.x, c.y, c.z = back[kind](p, mark, x, y, z)
      c.late, c.old = not ok, old
    end
  end
  charges[i] = c
end

if bad > 0 then return spack('<i8H', now, unknown) .. rep(string.char(bad), takes) end
local out = {}
for i = 1, takes do
  local c = charges[i]
  out[i] = c.late and '\0' or '\1'
  if not c.late then
    if c.p[1] == 8 then
      payHolders(c.p, 0, c.x)
      local state, due = removeHolder(c.p, c.x)
      put(c.k, state, due)
    else
      local state, due = pay[c.p[1]](c.p, 0, c.x, c.y, c.z)
      put(c.k, state, due, c.old)
    end
  end
end
flush()
return spack('<i8H', now, unknown) .. table.concat(out)
