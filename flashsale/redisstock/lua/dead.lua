-- dead.lua lists dead letters, oldest first.
--
-- KEYS 1 to 10 of head.lua. ARGV[3] at most how many.
--
-- Returns 'ok', then ids, each with its value of dead.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local out = {'ok'}
if ARGV[3] == '0' then return out end
for _, id in ipairs(call('ZRANGE', DEADAT, 0, ARGV[3] - 1)) do
  out[#out + 1] = id
  out[#out + 1] = call('HGET', DEAD, id) or ''
end
return out
