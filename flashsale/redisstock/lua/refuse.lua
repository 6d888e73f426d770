-- refuse.lua puts an entry at the end of the log of refusals, and removes from its beginning what is too old or too much.
--
-- KEYS, both with one hash tag:
--   1 log   stream: an entry's field "e" is what engines have written. Its ids are times in ms, of the clock below
--   2 meta  hash: began (µs, when the log began), bytes (what its entries count for), ms and seq (the last id), gone (ms of the last id
--           that was removed), halved (µs, when it last began to give way), half (bytes that it goes down to then, as long as there are more)
-- Both expire when nobody has come for longer than entries are kept.
--
-- ARGV[1] the time in µs, '' for Redis's own; ARGV[2] the entry, '' for none; ARGV[3] how many bytes there may be; ARGV[4] how long
-- entries are kept (ms).
--
-- Returns 'ok', or 'tight' where Redis is short of memory: the log gives way then, by half at 80 % of it, at most once a minute and in as
-- many calls as that takes, and wholly at 95 %, and nothing was added.

local call = redis.call
local LOG, META = KEYS[1], KEYS[2]
local STEPS = 1024 -- entries that one call removes at most
local AGAIN = 60e6 -- µs until it gives way again: memory that is given back takes a while to be seen, and others may take it

-- How many bytes of Redis's memory an entry takes at most, about: its own, what stands around it, and what the allocator rounds up.
local function size(entry) return math.floor(#entry * 1.125) + 96 end

local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local entry, most, keep = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- Redis keeps stock: the log must not be what fills it.
local tight = false
local info = redis.pcall('INFO', 'memory')
if type(info) == 'string' then
  local used, max = tonumber(string.match(info, 'used_memory:(%d+)')), tonumber(string.match(info, 'maxmemory:(%d+)'))
  if used and max and max > 0 then
    if used > 0.95 * max then
      call('UNLINK', LOG, META)
      return {'tight'}
    end
    tight = used > 0.8 * max
  end
end

local m = call('HMGET', META, 'began', 'bytes', 'ms', 'seq', 'halved', 'half')
local bytes, ms, seq, halved, half = tonumber(m[2]), tonumber(m[3]), tonumber(m[4]), tonumber(m[5]), tonumber(m[6])
if not m[1] or bytes > 0 and call('EXISTS', LOG) == 0 then -- one half is lost: nobody knows since when the rest is whole
  call('DEL', LOG)
  call('HSET', META, 'began', string.format('%.0f', now), 'bytes', 0, 'ms', 0, 'seq', 0)
  bytes, ms, seq = 0, 0, 0
end

if tight then
  most = math.min(most, bytes)
  if not half and (not halved or math.abs(now - halved) >= AGAIN) then
    half = math.floor(most / 2)
    call('HSET', META, 'halved', string.format('%.0f', now), 'half', string.format('%.0f', half))
  end
  most = math.min(most, half or most)
end

local at = math.floor(now / 1000)
if entry ~= '' and not tight then
  if at > ms then ms, seq = at, 0 else seq = seq + 1 end
  call('XADD', LOG, string.format('%.0f-%.0f', ms, seq), 'e', entry)
  bytes = bytes + size(entry)
end

local gone
for _ = 1, STEPS do
  local first = call('XRANGE', LOG, '-', '+', 'COUNT', 1)[1]
  if not first then
    bytes = 0
    break
  end
  local was = tonumber(string.match(first[1], '^%d+'))
  if bytes <= most and was > at - keep then break end
  call('XDEL', LOG, first[1])
  bytes, gone = bytes - size(first[2][2]), was
end
call('HSET', META, 'bytes', string.format('%.0f', bytes), 'ms', string.format('%.0f', ms), 'seq', string.format('%.0f', seq))
if gone then call('HSET', META, 'gone', string.format('%.0f', gone)) end
if half and (bytes <= half or not tight) then call('HDEL', META, 'half') end
call('PEXPIRE', LOG, keep)
call('PEXPIRE', META, keep)
if tight and entry ~= '' then return {'tight'} end
return {'ok'}
