-- view.lua reads the figures.
--
-- KEYS of head.lua; ARGV[1] is '' where there is no pointer, and the other keys are then those of epoch 0, which has none.
--
-- Returns 'ok', now (µs), the run of this process of Redis, 1 if the epoch is live; then, if so, the fields of stock from total to next,
-- depth, how many of those jobs are pulled, dead letters, and when the oldest job was appended (µs, 0: there is none).

local run = string.match(call('INFO', 'server'), 'run_id:(%w+)') or ''
local s = call('HMGET', STOCK, 'total', 'avail', 'held', 'sold', 'seq', 'pending', 'ver', 'status', 'opens', 'closes', 'limit', 'rate', 'next')
if not s[1] then return {'ok', now, run, 0} end
local oldest, at = call('XRANGE', Q, '-', '+', 'COUNT', 1)[1], 0
if oldest then at = read('<i8', oldest[2][2]) end
return {'ok', now, run, 1, s, call('XLEN', Q), call('XPENDING', Q, 'c')[1], call('HLEN', DEAD), at}
