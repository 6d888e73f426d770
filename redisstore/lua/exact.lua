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
