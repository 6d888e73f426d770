-- forget.lua removes those of the reservations that ended longer ago than they are kept.
--
-- KEYS 1 to 3 of head.lua. ARGV[3] how long they are kept (µs); from 4 on: rids.
--
-- Returns 'ok', how many were removed.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local before, old = now - tonumber(ARGV[3]), {}
for from = 4, #ARGV, 500 do
  local some = {unpack(ARGV, from, math.min(#ARGV, from + 499))}
  for i, v in ipairs(call('HMGET', RES, unpack(some))) do
    if v then
      local state, _, at = read('<Bi8i8', v)
      if state >= 4 and at < before then old[#old + 1] = some[i] end
    end
  end
end
local n = 0
for from = 1, #old, 500 do n = n + call('HDEL', RES, unpack(old, from, math.min(#old, from + 499))) end
return {'ok', n}
