-- adjust.lua adds units or takes them away, once for each id.
--
-- KEYS of head.lua. ARGV[3] the id, ARGV[4] the units, below 0 to take away.
--
-- Returns 'ok', 1 if it is done (now or before) or 0 if there were not enough, and available.

local s = call('HMGET', STOCK, 'total', 'avail', 'seq')
if not s[1] then return {'rebuilding'} end
local done = call('HGET', OPS, ARGV[3])
if done then return {'ok', tonumber(done), tonumber(s[2])} end
local delta = tonumber(ARGV[4])
local avail = s[2] + delta
if avail < 0 then
  call('HSET', OPS, ARGV[3], 0)
  return {'ok', 0, tonumber(s[2])}
end
call('HSET', OPS, ARGV[3], 1)
call('HSET', STOCK, 'total', s[1] + delta, 'avail', avail, 'seq', s[3] + 1)
return {'ok', 1, avail}
