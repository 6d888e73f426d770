-- configure.lua puts settings in force if their version is higher than that of what is there.
--
-- KEYS of head.lua. ARGV[3] version, [4] status, [5] opens, [6] closes (µs), [7] purchase limit (units), [8] rate (jobs a second).
--
-- Returns 'ok'.

local s = call('HMGET', STOCK, 'ver', 'rate', 'level', 'filled', 'seq')
if not s[1] then return {'rebuilding'} end
if tonumber(ARGV[3]) <= tonumber(s[1]) then return {'ok'} end
local depth, rate, to = call('XLEN', Q), tonumber(s[2]), tonumber(ARGV[8])
local level, filled = tonumber(s[3]), tonumber(s[4])
call('HSET', STOCK, 'ver', ARGV[3], 'status', ARGV[4], 'opens', ARGV[5], 'closes', ARGV[6], 'limit', ARGV[7], 'seq', s[5] + 1)
if to >= rate then
  setRate(rate, to, level, filled)
else
  call('HSET', STOCK, 'next', to)
  lowerRate(depth, rate, to, level, filled)
end
return {'ok'}
