-- find.lua looks reservations up.
--
-- KEYS 1 to 3 of head.lua. ARGV from 3 on: rids.
--
-- Returns 'ok', then for each rid its value of res, '' if it is unknown.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local out = {'ok'}
for from = 3, #ARGV, 500 do
  for _, v in ipairs(call('HMGET', RES, unpack(ARGV, from, math.min(#ARGV, from + 499)))) do out[#out + 1] = v or '' end
end
return out
