-- refused.lua looks through a part of the log of refusals, from the newest entry to the oldest.
--
-- KEYS of refuse.lua. ARGV[1] the time in µs, '' for Redis's own; ARGV[2] the id before which to go on, '' for the newest; ARGV[3]
-- how many bytes and ARGV[4] how many entries to look at, about; from ARGV[5] on what is looked for, bytes.
--
-- Returns 'ok', since when the log is whole (µs), the id before which to go on ('' at the end), the time of the last entry that was looked
-- at (ms, 0: none), and the entries in which something was found. It writes nothing.

local call, find = redis.call, string.find
local LOG, META = KEYS[1], KEYS[2]
local CHUNK = 8 -- entries read at once

local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local m = call('HMGET', META, 'began', 'gone', 'bytes')
if not m[1] or tonumber(m[3]) > 0 and call('EXISTS', LOG) == 0 then return {'ok', now, '', 0} end -- as refuse.lua will find it
local since = tonumber(m[1])
if m[2] then since = math.max(since, (m[2] + 1) * 1000) end

local left, entries = tonumber(ARGV[3]), tonumber(ARGV[4])
local before, last, found = ARGV[2], '', {}
local from = before == '' and '+' or '(' .. before
while left > 0 and entries > 0 do
  local some = call('XREVRANGE', LOG, from, '-', 'COUNT', CHUNK)
  for _, e in ipairs(some) do
    local text = e[2][2]
    for i = 5, #ARGV do
      if find(text, ARGV[i], 1, true) then
        found[#found + 1] = text
        break
      end
    end
    last, left, entries = e[1], left - #text, entries - 1
  end
  if #some < CHUNK then
    return {'ok', since, '', tonumber(string.match(last, '^%d+') or '0'), unpack(found)}
  end
  from = '(' .. last
end
return {'ok', since, last, tonumber(string.match(last, '^%d+') or '0'), unpack(found)}
