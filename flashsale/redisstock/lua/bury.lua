-- bury.lua moves a job to the dead letters. One that is not in the queue any more is left where it is.
--
-- KEYS 1 to 10 of head.lua. ARGV[3] its id in q, [4] the reason, [5] at most how many dead letters are kept.
--
-- Returns 'ok'.

local s = call('HMGET', STOCK, 'rate', 'next', 'level', 'filled', 'buried')
if not s[1] then return {'rebuilding'} end
local entry = call('XRANGE', Q, ARGV[3], ARGV[3])[1]
if not entry then return {'ok'} end
local pulled = call('XPENDING', Q, 'c', ARGV[3], ARGV[3], 1)[1]
local over = call('ZCARD', DEADAT) + 1 - tonumber(ARGV[5])
call('HLEN', DEAD) -- raises now if it is no hash
call('XACK', Q, 'c', ARGV[3])
call('XDEL', Q, ARGV[3])
if over > 0 then
  for _, id in ipairs(call('ZRANGE', DEADAT, 0, over - 1)) do call('HDEL', DEAD, id) end
  call('ZREMRANGEBYRANK', DEADAT, 0, over - 1)
end
local letter = pack('<i8I4H', now, pulled and pulled[4] or 0, #ARGV[4]) .. ARGV[4] .. entry[2][2]
call('HSET', DEAD, ARGV[3], letter)
call('ZADD', DEADAT, s[5] + 1, ARGV[3])
call('HSET', STOCK, 'buried', s[5] + 1)
lowerRate(call('XLEN', Q), tonumber(s[1]), tonumber(s[2]), tonumber(s[3]), tonumber(s[4]))
return {'ok'}
