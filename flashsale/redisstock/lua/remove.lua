-- remove.lua removes a sku, once it has no older epoch any more.
--
-- KEYS of head.lua. ARGV[1] the epoch.
--
-- Returns 'ok', then the older epochs that have keys: if there are any nothing was removed, and they are to be dropped first. Or {'stale',
-- the pointer} where that is another one. Where it is lost, but not all that it pointed to, it is set to the epoch.

local call = redis.call
local pointer = call('GET', KEYS[1])
if pointer and pointer ~= ARGV[1] then return {'stale', pointer} end
local older = {}
for _, member in ipairs(call('SMEMBERS', KEYS[#KEYS])) do
  if tonumber(member) > tonumber(ARGV[1]) then return {'stale', member} end
  if member ~= ARGV[1] then older[#older + 1] = member end
end
if #older == 0 then
  call('UNLINK', unpack(KEYS))
elseif not pointer then
  call('SET', KEYS[1], ARGV[1])
end
return {'ok', unpack(older)}
