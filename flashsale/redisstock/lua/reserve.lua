-- reserve.lua is T0 for a batch of asks, in their order: each sees what those before it took.
--
-- KEYS 1 to 7 of head.lua. ARGV[3] counts: rids H, users H. ARGV[4] for each ask: index of its rid B, of its user B (from 1, among the
-- different ones), quantity I4, B: 1 if only what is known is asked for, 2 if a lull does not hold it up; its two marks, u8 each. Then the rids, the users, and for each ask its text as res has it.
--
-- Returns 'ok', 'unset' if the epoch has no settings yet, now (µs), available and seq before the batch, depth of the queue before it,
-- rate, next, status, opens (µs), then one letter for each ask: A accepted, K known, T token expired, C not open, E ended, N not yet, B busy,
-- L purchase limit, S sold out; then, in order, for each K the value of res, for each L that of user ('' if there is none).

local s = call('HMGET', STOCK, 'avail', 'seq', 'held', 'pending', 'status', 'opens', 'closes', 'limit', 'rate', 'next', 'calm', 'above')
if not s[1] then return {'rebuilding'} end
local avail, seq, status = tonumber(s[1]), tonumber(s[2]), s[5]
if status == '' then return {'unset'} end
local limit, rate = tonumber(s[8]), tonumber(s[9])
local depth = call('XLEN', Q)
local marked = call('STRLEN', MARKS)

local nr, nu = read('<HH', ARGV[3])
local asks = ARGV[4]
local rids, users = 4, 4 + nr
local texts = users + nu
local R = call('HMGET', RES, unpack(ARGV, rids + 1, users))
local U = call('HMGET', USER, unpack(ARGV, users + 1, texts))

-- What holds for all of them.
local shut
if status ~= 'open' then shut = 'C'
elseif now < tonumber(s[6]) then shut = 'N'
elseif now >= tonumber(s[7]) then shut = 'E'
elseif s[10] ~= '0' then shut = 'B'
end

-- A queue whose oldest job, pulled or not, is older than half of what a reservation may be pending: SQL does not keep up. What is pending
-- without a job, as a dead letter, is no sign of that.
if not shut and depth > 0 then
  local oldest = call('XRANGE', Q, '-', '+', 'COUNT', 1)[1]
  if now > read('<i8', oldest[2][2]) + 45000000 then shut = 'B' end
end

-- In a lull nobody new is given more than it says.
local most, calm = avail, tonumber(s[11] or 0)
if now < calm and calm <= now + LULL then most = tonumber(s[12]) end

-- more appends a rid to what a user has, and lets the oldest go beyond 16.
local function more(u, q, rid)
  local have, n = read('<I4B', u)
  if n == 0 then return pack('<I4B', have + q, 1) .. rid end
  local list = sub(u, 6)
  if n < 16 then n = n + 1 else list = string.match(list, ',(.*)') end
  return pack('<I4B', have + q, n) .. list .. ',' .. rid
end

local deadline = now + 90000000
local born = pack('<Bi8i8i8', 1, 0, now, deadline)
local stamp = pack('<i8i8i8', now, deadline, seq)
local room = rate * 45 - depth
local left, n = avail, 0
local letters, extras = {}, {}
local res, user, jobs, taken, marks = {}, {}, {}, {}, {}
for i = 1, #ARGV - texts do
  local p = 23 * i - 22
  local r, w, q1, q2, q3, q4, how = byte(asks, p, p + 6)
  local letter
  if R[r] then
    letter = 'K'
    extras[#extras + 1] = R[r]
  elseif how == 1 then
    letter = 'T'
  elseif shut then
    letter = shut
  elseif n >= room then
    letter = 'B'
  else
    local q, u, have = q1 + 256 * (q2 + 256 * (q3 + 256 * q4)), U[w], 0
    if u then
      local a, b, c, d = byte(u, 1, 4)
      have = a + 256 * (b + 256 * (c + 256 * d))
    end
    if have + q > limit then
      letter = 'L'
      extras[#extras + 1] = u or ''
    elseif q > left or q > most and how ~= 2 then
      letter = 'S'
    else
      letter = 'A'
      left = left - q
      n = n + 1
      local rid, text = ARGV[rids + r], ARGV[texts + i]
      local v = born .. text
      R[r] = v
      if u then u = more(u, q, rid) else u = sub(text, 1, 4) .. '\1' .. rid end
      U[w] = u
      res[2 * n - 1], res[2 * n] = rid, v
      user[2 * n - 1], user[2 * n] = ARGV[users + w], u
      taken[n] = rid
      marks[n] = sub(asks, p + 7, p + 22)
      jobs[n] = stamp .. char(n) .. rid .. ',' .. text
    end
  end
  letters[i] = letter
end

-- Where memory is short the first of these is what Redis refuses, so nothing that it allows may come before it.
if n > 0 then
  call('ZADD', DUE, deadline, string.format('%016.0f:', seq) .. table.concat(taken, ','))
  call('HSET', RES, unpack(res))
  call('HSET', USER, unpack(user))
  if marked < MARKS_MAX then call('APPEND', MARKS, table.concat(marks)) end
  for i = 1, n do call('XADD', Q, '*', 'j', jobs[i]) end
  local took = avail - left
  call('HSET', STOCK, 'avail', left, 'held', s[3] + took, 'seq', seq + n, 'pending', s[4] + n)
end
return {'ok', now, avail, seq, depth, rate, tonumber(s[10]), status, tonumber(s[6]), table.concat(letters), unpack(extras)}
