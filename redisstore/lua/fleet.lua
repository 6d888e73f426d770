-- fleet.lua is where the instances of a namespace meet: it notes that one of them lives, counts those that do, and keeps short
-- notes that all of them read.
--
-- KEYS     1 who lives: a sorted set of names by when each will be taken for dead; 2 the notes: a sorted set of name length B,
--          name, value, by when each ends, or +inf. Both in ms since 1970.
-- ARGV[1]  little endian, no padding: what B (1 an instance lives, 2 a note is put down, or removed if its value is empty), ttl
--          I6 (ms; 0: the instance has gone, or the note stays), longest I6 (ms: no instance has a longer ttl), keep I6 (ms: notes that stay outlive
--          the last call by it), most I4 (of instances or notes), name: length B, bytes; value: the rest.
--
-- Returns B: 0 done, 1 there is no room, 64 a key is of a foreign type and nothing ran; then, if an instance lives, how many
-- do I4, and the notes, at most 1000 of at most 4225 bytes, each: length H, bytes as they are stored.
--
-- Each set expires with the last of what is in it, notes that stay keep after the last call: nobody's namespace leaves nothing.

local call, pcall = redis.call, redis.pcall
local what, ttl, longest, keep, most, name, pos = struct.unpack('<BI6I6I6I4Bc0', ARGV[1])
local value = string.sub(ARGV[1], pos)
local live, notes = KEYS[1], KEYS[2]
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function ms(n) return string.format('%.0f', n) end

-- usable tells whether a key is a sorted set or none. It changes nothing, but is refused, first of all, where memory is short.
local function usable(key)
  local r = pcall('ZADD', key, 'XX', 'GT', '-inf', name)
  if type(r) ~= 'table' then return true end
  if string.find(r.err, 'WRONGTYPE', 1, true) then return false end
  call('ZADD', key, 'XX', 'GT', '-inf', name)
end

local function lives()
  call('ZREMRANGEBYSCORE', live, '-inf', ms(now))
  call('ZREMRANGEBYSCORE', live, '(' .. ms(now + longest), '+inf') -- the clock was set back: who lives will say so again
  if ttl == 0 then
    call('ZREM', live, name)
    return 0
  end
  if not call('ZSCORE', live, name) and call('ZCOUNT', live, '-inf', '+inf') >= most then return 1 end
  call('ZADD', live, ms(now + ttl), name)
  call('PEXPIRE', live, ms(longest))
  call('PEXPIRE', notes, ms(keep))
  return 0
end

local function put()
  local own = string.char(#name) .. name
  local old
  local all = call('ZRANGEBYSCORE', notes, '-inf', '+inf')
  for _, note in ipairs(all) do
    if string.sub(note, 1, #own) == own then old = note end
  end
  if value ~= '' and not old and #all >= most then return 1 end
  if old then call('ZREM', notes, old) end
  if value ~= '' then call('ZADD', notes, ttl > 0 and ms(now + ttl) or '+inf', own .. value) end
  call('PEXPIRE', notes, ms(keep))
  return 0
end

if not usable(live) or not usable(notes) then return struct.pack('<B', 64) end
call('ZREMRANGEBYSCORE', notes, '-inf', ms(now))
if what == 2 then return struct.pack('<B', put()) end
local done = lives()
local reply = {struct.pack('<BI4', done, call('ZCOUNT', live, '-inf', '+inf'))}
-- What another program has put there does not make the reply long: no more than there may be, those that stay first.
for _, note in ipairs(call('ZREVRANGEBYSCORE', notes, '+inf', '-inf', 'LIMIT', 0, 1000)) do
  if #note <= 4225 then reply[#reply + 1] = struct.pack('<H', #note) .. note end
end
return table.concat(reply)
