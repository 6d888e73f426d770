-- slots.lua renews or releases the slot of one holder.
--
-- KEYS, ARGV[1]: see head.lua; one spec, a concurrency limit. Then: what B (1 renew, 2 release), key H, index of the sets H,
-- holder: length B, bytes.
--
-- Returns now i8, states of an unknown format H, B: 1 the slot was alive, 0 it was not, 64 a key is of a foreign type and nothing ran.

local p = {sunpack(SPEC[8], a, pos)}
local what, k, set, holder = sunpack('<BHHBc0', a, p[#p])
local h = lookHolders(p, S[k], set, holder)
local answer = 64
if h then
  answer = h.own and 1 or 0
  if what == 1 and h.own then
    payHolders(p, 0, h)
    call('ZADD', KEYS[set], now + p[6], holder)
    h.latest = latestEnd(KEYS[set], '+inf')
    put(k, keepHolders(p, h))
  elseif what == 2 then
    payHolders(p, 0, h)
    if h.own then
      put(k, removeHolder(p, h))
    else
      call('ZREM', KEYS[set], holder)
      call('ZADD', KEYS[set + 1], now + p[6], holder)
      h.tomb = latestEnd(KEYS[set + 1], '+inf') -- one of this holder may have ended later
      put(k, keepHolders(p, h))
    end
  end
  flush()
end
return spack('<i8HB', now, unknown, answer)
