-- point.lua makes an epoch the current one.
--
-- KEYS of head.lua. ARGV[1] the epoch.
--
-- Returns 'ok', then the older epochs that have keys; or {'stale', the pointer} unless it is higher than the pointer and than all
-- that have keys, or it is the pointer and not live.

local call = redis.call
local pointer, epoch = redis.call('GET', KEYS[1]) or '', tonumber(ARGV[1])
local was = tonumber(pointer) or 0
if was > epoch or (was == epoch and call('EXISTS', KEYS[2]) == 1) then return {'stale', pointer} end
local older = {}
for _, member in ipairs(call('SMEMBERS', KEYS[12])) do
  local e = tonumber(member)
  if e > epoch or (e == epoch and was < epoch) then return {'stale', pointer} end
  if e < epoch then older[#older + 1] = e end
end
table.sort(older)
call('SET', KEYS[1], ARGV[1])
return {'ok', unpack(older)}
