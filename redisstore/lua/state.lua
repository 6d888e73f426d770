-- What every script that works on states begins with: the head of the call, the states, and how they are written. limits.lua,
-- holders.lua and the script's own file follow in the same text. docs/redis.md explains the whole.
--
-- KEYS     1..strings are read with one MGET: states, lockouts. What follows are the sorted sets of holders, two a key:
--          who holds a slot, and who released before acquiring.
-- ARGV[1]  packed numbers, little endian, no padding:
--          timed B, kinds H (bit k: a spec of kind k follows; bit 15: more than plain charges), takes B, specs B, strings H,
--          now i8 (µs since 1970; read only if timed is 1), then the specs, each: kind B, flags B, cost I5, and what SPEC
--          says of its kind; then what the script itself says.
--
-- Units are whole microseconds. Every number, sum and product here is below 2^53, which a double holds exactly, or says
-- how it is kept exact. Times are from 1850 to 2095 and spans up to 36500 days (3.2e15); a time minus a time may pass 2^53
-- and is then only compared with a span. Counts, bursts and costs are up to 1e12, fractions of a µs below 1e15.
--
-- A state is a string: format, the numbers of the limit that judged it last, and what that limit remembers:
--   1 token bucket, a token takes whole µs     whole I7, burst I5 | full at i7                              20 bytes
--   2 token bucket                             whole I7, rem I7, den I7, burst I5 | full at i7, frac I7     41
--   3 fixed window                             window I7 | start i7, end i7, count I5                       27
--   4 sliding log                              period I7 | times i7 …, ascending                            8 + 7n
--   5 sliding window                           period I7, cells B | newest cell i7, n B, counts I6 …        17 + 6n
--   6 leaky bucket                             whole, rem, den I7, capacity I5, max_wait+1 I7 |
--                                              empty at, less what the last charge added, i7, frac I7,
--                                              what the last charge added I7                                55
--   7 concurrency                              | latest end of a slot i7, of a tombstone i7                 15
--   8 lockout                                  denials I5, first, until i7, length, ladder, within I7       41
-- Any other is as if never seen, and counted.
--
-- Time counts here: a call makes few functions and tables, and what is rarely needed is made when it is.

local call = redis.call
local sunpack, spack = struct.unpack, struct.pack
local byte, sub, rep, format = string.byte, string.sub, string.rep, string.format
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local NO_SPAN = -1

local a, K = ARGV[1], KEYS
local timed, kinds, takes, specs, strings, now, pos = sunpack('<BHBBHi8', a)
if timed == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local general = kinds >= 32768

-- By key index: the states as they were (false: none), as they will be (false: erased), until when those matter, and until
-- when those that were mattered if they stay in place.
local S, N, T, E = nil, {}, {}, {}
if strings > 0 then S = call('MGET', unpack(K, 1, strings)) end
local W, writes = {}, 0   -- the indexes of what to write
local unknown = 0         -- states in a format that is not known

-- put notes a state to write. due is until when it matters; old is the same of the state it replaces, nil if there was none or
-- one of another limit.
local function put(k, state, due, old)
  if N[k] == nil then
    writes = writes + 1
    W[writes] = k
    E[k] = old
  end
  N[k], T[k] = state, due
end

-- flush writes what put noted, last of all. A key lives to the end of the second in which its state becomes idle, and one
-- more. Where that is so already only the bytes are exchanged, which takes half the time. If memory is short Redis refuses
-- the first write of a script, and so all of them; the DEL, which is never refused, comes after.
local function flush()
  local lives, erase = {}, nil
  for i = 1, writes do
    local k = W[i]
    local state = N[k]
    if state then
      local due, old = T[k], E[k]
      due = due - due % 1000000
      if old and old >= due and #state == #S[k] and timed == 0 then
        call('SETRANGE', K[k], '0', state)
      else
        local ms = lives[due]
        if not ms then
          ms = max(2000000 + due - now, timed == 1 and 3600e6 or 1000)
          ms = format('%.0f', ceil(ms / 1000))
          lives[due] = ms
        end
        call('SET', K[k], state, 'PX', ms)
      end
    else
      erase = erase or {}
      erase[#erase + 1] = K[k]
    end
  end
  if erase then call('DEL', unpack(erase)) end
end

-- rare returns what few calls need: exact arithmetic beyond 2^53, and the check of a state that is not the limit's own.
local made
local function rare()
  if made then return made end
  made = {}

  -- times returns n·(whole + rem/den) as µs and a fraction over den, for an n that makes it at most 36500 days. n·rem can
  -- have 90 bits, so it is divided digit by digit in base 4: 4·den + 3·rem < 2^53.
  local function times(n, whole, rem, den)
    local us = n * whole
    if rem == 0 then return us, 0 end
    local q, r, b = 0, 0, 1
    while b * 4 <= n do b = b * 4 end
    while b >= 1 do
      local digit = floor(n / b)
      n = n - digit * b
      r = r * 4 + digit * rem
      local c = floor(r / den)
      r = r - c * den
      q = q * 4 + c
      b = b / 4
    end
    return us + q, r
  end
  made.times = times

  -- units returns the largest n up to most with n·(whole + rem/den) at most us + frac/den.
  function made.units(us, frac, whole, rem, den, most)
    local n = max(0, min(most, floor((us + frac / den) / (whole + rem / den))))
    local function over(m)
      local u, f = times(m, whole, rem, den)
      return u > us or (u == us and f > frac)
    end
    while n > 0 and over(n) do n = n - 1 end
    while n < most and not over(n + 1) do n = n + 1 end
    return n
  end

  local BASE = 67108864 -- 2^26
  local function wide(m, n) -- m·n for numbers up to 2^52, as high·2^52 + middle·2^26 + low
    local m1, n1 = floor(m / BASE), floor(n / BASE)
    local m0, n0 = m - m1 * BASE, n - n1 * BASE
    local low, mid1, mid2 = m0 * n0, m1 * n0, m0 * n1
    local carry = floor(low / BASE)
    local mid = mid1 % BASE + mid2 % BASE + carry
    return m1 * n1 + floor(mid1 / BASE) + floor(mid2 / BASE) + floor(mid / BASE), mid % BASE, low - carry * BASE
  end
  -- fits tells whether x·b ≤ c·d for whole numbers from 0 to 2^52. Doubles decide unless they are too close to tell.
  function made.fits(x, b, c, d)
    local p, q = x * b, c * d
    if p < 9e15 and q < 9e15 then return p <= q end
    if p < q * (1 - 1e-15) then return true end
    if p > q * (1 + 1e-15) then return false end
    local h1, m1, l1 = wide(x, b)
    local h2, m2, l2 = wide(c, d)
    if h1 ~= h2 then return h1 < h2 end
    if m1 ~= m2 then return m1 < m2 end
    return l1 <= l2
  end

  -- known returns the format of a state, 0 if it is not known or its length is not that of its format.
  local LENGTH = {20, 41, 27, nil, nil, 55, 15, 41}
  function made.known(s)
    local f, n = byte(s, 1), #s
    if f == 4 and n >= 8 and n <= 7008 and (n - 8) % 7 == 0 then return 4 end
    if f == 5 and n >= 17 and n == 17 + 6 * byte(s, 17) and byte(s, 17) <= byte(s, 9) + 1 then return 5 end
    if f and LENGTH[f] == n then return f end
    unknown = unknown + 1
    return 0
  end
  return made
end
