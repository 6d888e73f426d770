-- pull.lua hands out jobs: first those that a consumer has had for too long, then new ones.
--
-- KEYS 1 to 8 of head.lua. ARGV[3] the consumer, [4] at most how many, [5] after how long a job is taken over (µs, from 1).
--
-- Returns 'ok', then for each job: its id, how often it was delivered with this time, and what q has of it.

local s = call('HMGET', STOCK, 'rate', 'level', 'filled')
if not s[1] then return {'rebuilding'} end
local rate, filled = tonumber(s[1]), tonumber(s[3])
local level = fill(rate, tonumber(s[2]), filled)
local waiting = call('XPENDING', Q, 'c')[1] -- raises now if there is no queue
local n = math.min(tonumber(ARGV[4]), math.floor(level / 1000000), call('XLEN', Q))
if n < 1 then
  if filled > now then call('HSET', STOCK, 'filled', now, 'level', level) end
  return {'ok'}
end

local consumer, late = ARGV[3], now - tonumber(ARGV[5])
local out, got, ids, kept = {'ok'}, 0, {}, {}
local function hand(entry, deliveries)
  got = got + 1
  ids[got] = entry[1]
  out[3 * got - 1], out[3 * got], out[3 * got + 1] = entry[1], deliveries, entry[2][2]
end

-- takeOver claims what is not acknowledged of the members of the index that are late. It looks at 16 of them at most: the rest have time.
local function takeOver()
  for _, member in ipairs(call('ZRANGEBYSCORE', PULLS, '-inf', late, 'LIMIT', 0, 16)) do
    if got == n then return end
    local all, at = {}, 1
    for id in string.gmatch(member, '[^,]+') do all[#all + 1] = id end
    while at <= #all and got < n do
      local last = math.min(#all, at + n - got - 1, at + 499)
      for _, entry in ipairs(call('XCLAIM', Q, 'c', consumer, 0, unpack(all, at, last))) do
        if entry then hand(entry, call('XPENDING', Q, 'c', entry[1], entry[1], 1)[1][4]) end
      end
      at = last + 1
    end
    if at <= #all then kept[#kept + 1] = {call('ZSCORE', PULLS, member), table.concat(all, ',', at)} end
    call('ZREM', PULLS, member)
  end
end

-- tidy removes consumers that have gone, where there are many: each process has names of its own.
local function tidy()
  local all = call('XINFO', 'CONSUMERS', Q, 'c')
  if #all <= 64 then return end
  for _, c in ipairs(all) do -- name, its name, pending, how many, idle, ms
    if c[4] == 0 and c[6] > 3600000 then call('XGROUP', 'DELCONSUMER', Q, 'c', c[2]) end
  end
end

-- A clock that went back must not keep a job from being found: its time begins anew.
local last = call('ZREVRANGE', PULLS, 0, 0, 'WITHSCORES')
if last[2] and tonumber(last[2]) > now then
  for _, member in ipairs(call('ZRANGEBYSCORE', PULLS, '(' .. string.format('%.0f', now), '+inf')) do call('ZADD', PULLS, 'XX', now, member) end
end
if waiting > 0 then takeOver() else call('DEL', PULLS) end
if got > 0 then tidy() end
if got < n then
  local new = call('XREADGROUP', 'GROUP', 'c', consumer, 'COUNT', n - got, 'STREAMS', Q, '>')
  if new then
    for _, entry in ipairs(new[1][2]) do hand(entry, 1) end
  end
end
-- These come last: where memory is short a queue must still be worked off, see apply.lua.
for _, k in ipairs(kept) do call('ZADD', PULLS, k[1], k[2]) end
if got > 0 then call('ZADD', PULLS, now, table.concat(ids, ',')) end
call('HSET', STOCK, 'level', level - got * 1000000, 'filled', now)
return out
