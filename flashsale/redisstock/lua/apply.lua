-- apply.lua lets the stock follow SQL, and acknowledges jobs.
--
-- KEYS 1 to 7 of head.lua. ARGV[3] for each effect: state B, version i8, its two marks, u8 each; then a rid and its text (as res has it) for each, which is
-- stored if the rid is unknown; then ids of q that are acknowledged.
--
-- Returns 'ok', one digit for each effect: 0 moved, 1 old, 2 stored, 3 lost.

local s = call('HMGET', STOCK, 'avail', 'held', 'sold', 'seq', 'pending', 'rate', 'next', 'level', 'filled')
if not s[1] then return {'rebuilding'} end
local n = #ARGV[3] / 25
local acks = 3 + 2 * n
local depth = call('XLEN', Q)
local marked, marks = call('STRLEN', MARKS), {}

-- What is there, by rid and by user; what changes is written at the end.
local R, U, changed, users = {}, {}, {}, {}
for from = 1, n, 500 do
  local some = {}
  for i = from, math.min(n, from + 499) do some[#some + 1] = ARGV[2 + 2 * i] end
  for i, v in ipairs(call('HMGET', RES, unpack(some))) do R[some[i]] = v end
end
call('HGET', USER, '') -- raises now if it is no hash

local units = {[0] = tonumber(s[1]), tonumber(s[2]), tonumber(s[3])} -- by class: free, held, sold
local CLASS = {1, 1, 1, 2, 0, 0, 0}
local seq, pending = tonumber(s[4]), tonumber(s[5])

-- giveBack takes units and a rid from what a user has.
local function giveBack(user, q, rid)
  local u = U[user]
  if u == nil then
    u = call('HGET', USER, user)
    users[#users + 1] = user
  end
  if u then
    local have, count = read('<I4B', u)
    local list = ',' .. sub(u, 6) .. ','
    local first, last = string.find(list, ',' .. rid .. ',', 1, true)
    if first then
      list = sub(list, 1, first) .. sub(list, last + 1)
      count = count - 1
    end
    u = have > q and pack('<I4B', have - q, count) .. sub(list, 2, -2)
  end
  U[user] = u
end

local digits, moved = {}, 0
for i = 1, n do
  local rid = ARGV[2 + 2 * i]
  local to, version = read('<Bi8', ARGV[3], 25 * i - 24)
  local v, digit = R[rid], '1'
  if not v then
    if CLASS[to] ~= 0 then
      digit = '3'
    else
      digit = '2'
      R[rid] = pack('<Bi8i8i8', to, version, now, 0) .. ARGV[3 + 2 * i]
      changed[#changed + 1] = rid
      marks[#marks + 1] = sub(ARGV[3], 25 * i - 15, 25 * i)
      seq = seq + 1
    end
  else
    local state, was = read('<Bi8', v)
    if version > was and state < 4 then
      digit = '0'
      local q, ulen = read('<I4B', v, 26)
      R[rid] = pack('<Bi8i8i8', to, version, now, 0) .. sub(v, 26)
      changed[#changed + 1] = rid
      seq = seq + 1
      if state == 1 then pending = pending - 1 end
      if CLASS[to] ~= 1 then
        units[1] = units[1] - q
        units[CLASS[to]] = units[CLASS[to]] + q
        if CLASS[to] == 0 then giveBack(sub(v, 31, 30 + ulen), q, rid) end
      end
    end
  end
  digits[i] = digit
end

-- First what needs no memory: where memory is short, Redis refuses a script only what comes before its first write, and to follow
-- SQL is what makes room.
call('HDEL', STOCK, '-')
for from = acks + 1, #ARGV, 500 do
  local some = {unpack(ARGV, from, math.min(#ARGV, from + 499))}
  call('XACK', Q, 'c', unpack(some))
  depth = depth - call('XDEL', Q, unpack(some))
end
for from = 1, #changed, 500 do
  local some = {}
  for i = from, math.min(#changed, from + 499) do
    some[#some + 1] = changed[i]
    some[#some + 1] = R[changed[i]]
  end
  call('HSET', RES, unpack(some))
end
for _, user in ipairs(users) do
  if U[user] then call('HSET', USER, user, U[user]) else call('HDEL', USER, user) end
end
if #marks > 0 and marked < MARKS_MAX then call('APPEND', MARKS, table.concat(marks)) end
if #changed > 0 then
  call('HSET', STOCK, 'avail', units[0], 'held', units[1], 'sold', units[2], 'seq', seq, 'pending', pending)
end
lowerRate(depth, tonumber(s[6]), tonumber(s[7]), tonumber(s[8]), tonumber(s[9]))
return {'ok', table.concat(digits)}
