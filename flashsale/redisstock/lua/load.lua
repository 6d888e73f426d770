-- load.lua puts a part of a snapshot into the keys of the current epoch; once that is live nothing more.
--
-- KEYS of head.lua. ARGV[3] counts: reservations, buyers, adjustments I4 each. ARGV[4] '' or, of the last part, total, reserved, sold,
-- opens, closes (µs), limit, rate: i8 each. ARGV[5] their marks. Then rids, each with its value of res; users, each with its value of user; ids of adjustments.
--
-- Returns 'ok'.

if call('EXISTS', STOCK) == 1 then return {'ok'} end
local entries, buyers, adjusted = read('<I4I4I4', ARGV[3])
call('SADD', EPOCHS, ARGV[1])

-- put stores pairs of ARGV, from one on.
local function put(key, from, n)
  local last = from + 2 * n - 1
  for i = from, last, 1000 do call('HSET', key, unpack(ARGV, i, math.min(last, i + 999))) end
end
put(RES, 6, entries)
put(USER, 6 + 2 * entries, buyers)
if #ARGV[5] > 0 and call('STRLEN', MARKS) < MARKS_MAX then call('APPEND', MARKS, ARGV[5]) end
for i = 1, adjusted do call('HSET', OPS, ARGV[5 + 2 * entries + 2 * buyers + i], 1) end
if ARGV[4] == '' then return {'ok'} end

local total, reserved, sold, opens, closes, limit, rate = read('<i8i8i8i8i8i8i8', ARGV[4])
redis.pcall('XGROUP', 'CREATE', Q, 'c', '0', 'MKSTREAM')
call('HSET', STOCK, 'total', total, 'avail', total - reserved - sold, 'held', reserved, 'sold', sold, 'seq', 0, 'pending', 0,
  'ver', -1, 'status', '', 'opens', opens, 'closes', closes, 'limit', limit, 'rate', rate, 'next', 0,
  'level', burst(rate), 'filled', now, 'buried', 0, 'calm', 0, 'above', 0)
return {'ok'}
