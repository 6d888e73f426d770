-- Each algorithm has three functions. p is a spec, s a state as it is stored (false or nil: none).
--   look(p, s)           brings the state to now and under the limit: x, y, z for the others, whether what is stored
--                        differs (dirty), whether the cost fits, the state to answer with (nil: never seen), and until when
--                        what is stored matters (nil if it is not this limit's)
--   pay(p, n, x, y, z)   returns the state with n units charged, 0 to write it as it is, and until when it matters; false if
--                        nothing is left to be kept
--   left(p, x, y, z)     returns how many units there is room for
-- Buckets round until when they matter up to a grid (the last of their numbers), so that a busy key's expiry need not be set
-- with every charge: it lives up to a sixteenth of its time to full longer.
-- A spec's numbers: 1 kind, 2 flags, 3 cost, 4 the state's limit part, then by kind as said there. Only the kinds that the
-- call needs are defined.
local look, pay, left, SPEC = {}, {}, {}, {}
local after

-- Token buckets: x is how long until the bucket is full, y the fraction of it.
local convertTokens
if kinds % 8 >= 2 then
  convertTokens = function(p, s, whole, rem, den, burst, fullUs, fullFrac, pace)
    local f = rare().known(s)
    if f ~= 1 and f ~= 2 then return 0, 0, true, false end
    local oldWhole, oldRem, oldDen, oldBurst, at, frac
    if f == 1 then
      oldWhole, oldBurst, at = sunpack('<I7I5i7', s, 2)
      oldRem, oldDen, frac = 0, 1, 0
    else
      oldWhole, oldRem, oldDen, oldBurst, at, frac = sunpack('<I7I7I7I5i7I7', s, 2)
    end
    local d = at - now
    local mostUs, mostFrac = rare().times(oldBurst, oldWhole, oldRem, oldDen)
    if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac = mostUs, mostFrac end
    if d < 0 or (d == 0 and frac == 0) then return 0, 0, false, false end
    local debt = (d + frac / oldDen) / (oldWhole + oldRem / oldDen)
    local level = min(oldBurst - debt, burst)
    d, frac = ceil((burst - level) * pace), 0
    if d > fullUs or (d == fullUs and frac > fullFrac) then d, frac = fullUs, fullFrac end
    return d, frac, true, true
  end
end

if kinds % 4 >= 2 then
  -- 1: 5 inc, 6 full, 7 whole, 8 burst, 9 grid
  SPEC[1] = '<BBI5c13I7I7I7I5I7'
  look[1] = function(p, s)
    local full = p[6]
    if not s then return 0, nil, nil, false, p[5] <= full end
    if #s == 20 then
      local limit, at = sunpack('<c13i7', s)
      if limit == p[4] then
        local d, old = at - now, at - at % p[9] + p[9]
        if d <= 0 then return 0, nil, nil, false, p[5] <= full, s, old end
        if d > full then return full, nil, nil, true, p[5] == 0, s, old end
        return d, nil, nil, false, d + p[5] <= full, s, old
      end
    end
    local d, _, dirty, found = convertTokens(p, s, p[7], 0, 1, p[8], full, 0, p[7])
    return d, nil, nil, dirty, d + p[5] <= full, found and spack('<c0i7', p[4], now + d) or nil
  end
  pay[1] = function(p, n, d)
    local at = now + d + (n == p[3] and p[5] or n * p[7])
    return spack('<c0i7', p[4], at), at - at % p[9] + p[9]
  end
  left[1] = general and function(p, d) return floor((p[6] - d) / p[7]) end
end

if kinds % 8 >= 4 then
  -- 2: 5 inc, 6 its fraction, 7 full, 8 its fraction, 9 whole, 10 rem, 11 den, 12 burst, 13 pace as a double,
  --    14 grid
  SPEC[2] = '<BBI5c27I7I7I7I7I7I7I7I5dI7'
  look[2] = function(p, s)
    local fullUs, fullFrac = p[7], p[8]
    local d, frac, dirty, old = 0, 0, false, nil
    if s then
      local limit, at
      if #s == 41 then limit, at, frac = sunpack('<c27i7I7', s) end
      if limit == p[4] then
        d, old = at - now, at - at % p[14] + p[14]
        if d < 0 then
          d, frac = 0, 0
        elseif d > fullUs or (d == fullUs and frac > fullFrac) then
          d, frac, dirty = fullUs, fullFrac, true
        end
      else
        local found
        d, frac, dirty, found = convertTokens(p, s, p[9], p[10], p[11], p[12], fullUs, fullFrac, p[13])
        s = found and spack('<c0i7I7', p[4], now + d, frac) or nil
      end
    end
    local us, f = d + p[5], frac + p[6]
    if f >= p[11] then us, f = us + 1, f - p[11] end
    return d, frac, nil, dirty, us < fullUs or (us == fullUs and f <= fullFrac), s, old
  end
  pay[2] = function(p, n, d, frac)
    local us, f = p[5], p[6]
    if n ~= p[3] then us, f = rare().times(n, p[9], p[10], p[11]) end
    us, f = now + d + us, frac + f
    if f >= p[11] then us, f = us + 1, f - p[11] end
    return spack('<c0i7I7', p[4], us, f), us - us % p[14] + p[14]
  end
  left[2] = general and function(p, d, frac)
    local us, f = p[7] - d, p[8] - frac
    if f < 0 then us, f = us - 1, f + p[11] end
    return rare().units(us, f, p[9], p[10], p[11], p[12])
  end
end

-- Fixed windows: x is the start, y the end, z the count. A calendar's come in the spec, three of them; outside there is no
-- answer, and look returns a nil x.
if kinds % 32 >= 8 then
  local function lookFixed(p, s, start, stop)
    local count, dirty, old = 0, false, nil
    if s then
      local limit, first, last, n
      if #s == 27 then limit, first, last, n = sunpack('<c8i7i7I5', s) end
      if limit == p[4] then
        old = last
        if n > 0 and first <= now and now < last then
          start, stop, count = first, last, n
        elseif not start then
          return nil
        elseif n > 0 and last > now then
          count = n
          if first - now <= stop - start then start, stop = first, last else dirty = true end
        end
      else
        rare().known(s)
        s, dirty = nil, true
      end
    end
    if not start then return nil end
    return start, stop, count, dirty, count + p[3] <= p[5], s or nil, old
  end
  local function payFixed(p, n, start, stop, count)
    n = n + count
    return n > 0 and spack('<c0i7i7I5', p[4], start, stop, n), stop
  end

  -- 3: 5 count, 6 period
  SPEC[3] = '<BBI5c8I5I7'
  look[3] = function(p, s)
    local start = now - now % p[6]
    return lookFixed(p, s, start, start + p[6])
  end
  -- 4: 5 count, 6 to 9 the bounds of the windows
  SPEC[4] = '<BBI5c8I5i7i7i7i7'
  look[4] = function(p, s)
    for i = 6, 8 do
      if p[i] <= now and now < p[i + 1] then return lookFixed(p, s, p[i], p[i + 1]) end
    end
    return lookFixed(p, s)
  end
  pay[3], pay[4] = payFixed, payFixed
  left[3] = general and function(p, start, stop, count) return max(0, p[5] - count) end
  left[4] = left[3]
end

if kinds % 64 >= 32 then
  -- after returns the position of the first time in a log that is later than t, reading as few as it can; past its end if
  -- there is none.
  after = function(s, t)
    local lo, hi = 0, (#s - 8) / 7
    while lo < hi do
      local mid = floor((lo + hi) / 2)
      if sunpack('<i7', s, 9 + 7 * mid) > t then hi = mid else lo = mid + 1 end
    end
    return 9 + 7 * lo
  end

  -- Sliding logs: x is the log as stored (healed), y where its live part begins, z the time that decides. What is answered
  -- is no state but how many live, the newest of them, and the one whose death makes room.
  -- 5: 5 count, 6 period
  SPEC[5] = '<BBI5c8I5I7'
  look[5] = function(p, s)
    local cost, period, eff, dirty, from, n = p[3], p[6], now, false, 9, 0
    if s and sub(s, 1, 8) ~= p[4] or s and (#s - 8) % 7 ~= 0 then
      rare().known(s)
      s, dirty = nil, true
    end
    if not s or #s == 8 then return p[4], 9, now, dirty, cost <= p[5] end
    local newest = sunpack('<i7', s, #s - 6)
    if newest - now > period then
      local keep = after(s, now)
      s = sub(s, 1, keep - 1) .. rep(spack('<i7', now), (#s - keep + 1) / 7)
      newest, dirty = now, true
    end
    if newest > now then eff = newest end
    if sunpack('<i7', s, 9) <= eff - period then from = after(s, eff - period) end
    n = (#s - from + 1) / 7
    local over, due = n + cost - p[5], 0
    if over > 0 and over <= n then due = sunpack('<i7', s, from + 7 * (over - 1)) end
    return s, from, eff, dirty, over <= 0, spack('<BI2i7i7', 4, n, newest, due)
  end
  pay[5] = function(p, n, s, from, eff)
    if from > 9 then s = p[4] .. sub(s, from) end
    if n > 0 then
      s = s .. rep(spack('<i7', eff), n)
      return s, eff + p[6]
    end
    if #s == 8 then return false end
    return s, sunpack('<i7', s, #s - 6) + p[6]
  end
  left[5] = general and function(p, s, from) return max(0, p[5] - (#s - from + 1) / 7) end
end

-- Sliding windows: x has the counts, from the deciding cell back, y is the start of that cell, z how far inside it is.
if kinds % 128 >= 64 then
  -- 6: 5 count, 6 length of a cell, 7 cells
  SPEC[6] = '<BBI5c9I5I7B'
  local COUNTS, PACKED = {'<I6', '<I6I6'}, {'<c0i7BI6', '<c0i7BI6I6'}
  local function countsOf(s, n)
    local f = COUNTS[n]
    if not f then
      f = '<' .. rep('I6', n)
      COUNTS[n] = f
    end
    local v = {sunpack(f, s, 18)}
    v[n + 1] = nil -- the position
    return v
  end
  -- moved returns the counts as they lie from another cell on, `back` of them later. Where the clock went back far, those
  -- ahead are of now, up to what 6 bytes hold.
  local function moved(v, n, back, k)
    local r = {}
    for i = 1, k + 1 do r[i] = 0 end
    for i = 1, n do
      local at = max(i + back, 1)
      if at <= k + 1 then r[at] = min(r[at] + v[i], 281474976710655) end
    end
    return r
  end
  look[6] = function(p, s)
    local length, k = p[6], p[7]
    local start, dirty, v, old = now - now % length, false, nil, nil
    local inside = now - start
    if s then
      local limit, newest, n
      if #s >= 17 then limit, newest, n = sunpack('<c9i7B', s) end
      if limit == p[4] and #s == 17 + 6 * n then
        old = newest + (k + 1) * length
        if n > 0 then
          v = countsOf(s, n)
          if newest ~= start then
            if newest > start and newest - now <= length then
              start, inside = newest, 0
            else
              dirty = newest > start
              v = moved(v, n, (start - newest) / length, k)
            end
          end
        end
      else
        rare().known(s)
        s, dirty = nil, true
      end
    end
    v = v or {}
    local room = p[5] - p[3] - (v[1] or 0)
    for i = 2, k do room = room - (v[i] or 0) end
    local ok, oldest = room >= 0, v[k + 1]
    if ok and oldest and oldest > room then
      local weight, most = oldest * (length - inside), room * length
      if weight < 9e15 and most < 9e15 then ok = weight <= most else ok = rare().fits(oldest, length - inside, room, length) end
    end
    return v, start, inside, dirty, ok, s or nil, old
  end
  -- The zeros before the newest count and after the oldest are not kept.
  pay[6] = function(p, n, v, start)
    v[1] = (v[1] or 0) + n
    local first, last = 1, p[7] + 1
    while last > 0 and (v[last] or 0) == 0 do last = last - 1 end
    while first < last and v[first] == 0 do first = first + 1 end
    if last == 0 then return false end
    start = start - (first - 1) * p[6]
    local due = start + (p[7] + 1) * p[6]
    n = last - first + 1
    if n == 1 then return spack('<c0i7BI6', p[4], start, 1, v[first]), due end
    local f = PACKED[n]
    if not f then
      f = '<c0i7B' .. rep('I6', n)
      PACKED[n] = f
    end
    return spack(f, p[4], start, n, unpack(v, first, last)), due
  end
  left[6] = general and function(p, v, start, inside)
    local length, k, room = p[6], p[7], p[5]
    for i = 1, k do room = room - (v[i] or 0) end
    local old, within, fits = v[k + 1] or 0, length - inside, rare().fits
    if old == 0 then return max(0, room) end
    local weight = floor(old * (within / length))
    while not fits(old, within, weight, length) do weight = weight + 1 end
    while weight > 0 and fits(old, within, weight - 1, length) do weight = weight - 1 end
    return max(0, room - weight)
  end
end

-- Leaky buckets: x is how long until the queue is empty, y the fraction of it, z what the last charge added where there is
-- no capacity. That is stored apart from the time, since the sum can pass 2^53.
if kinds % 256 >= 128 then
  -- 7: 5 inc, 6 its fraction, 7 the capacity's span (NO_SPAN: none), 8 its fraction, 9 max_wait (NO_SPAN: none), 10 whole,
  --    11 rem, 12 den, 13 capacity, 14 pace as a double, 15 grid
  SPEC[7] = '<BBI5c34I7I7i8I7i8I7I7I7I5dI7'
  local function convertQueue(p, s)
    if rare().known(s) ~= 6 then return 0, 0, true, false end
    local whole, rem, den, capacity, wait, at, frac, last = sunpack('<I7I7I7I5I7i7I7I7', s, 2)
    local d = at - now + last
    local mostUs, mostFrac = wait - 1 + last, 0
    if capacity > 0 then mostUs, mostFrac = rare().times(capacity, whole, rem, den) end
    if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac = mostUs, mostFrac end
    if d < 0 or (d == 0 and frac == 0) then return 0, 0, false, false end
    local backlog = (d + frac / den) / (whole + rem / den)
    d, frac = min(ceil(backlog * p[14]), 36500 * 86400 * 1e6), 0
    if p[7] ~= NO_SPAN and d > p[7] then d, frac = p[7], p[8] end
    if p[9] ~= NO_SPAN and (d > p[9] or (d == p[9] and frac > 0)) then d, frac = p[9], 0 end
    return d, frac, true, true
  end
  look[7] = function(p, s)
    local d, frac, last, dirty, old = 0, 0, 0, false, nil
    local most, wait = p[7], p[9]
    if s then
      local limit, at
      if #s == 55 then limit, at, frac, last = sunpack('<c34i7I7I7', s) end
      if limit == p[4] then
        old = at + last
        d, old = at - now + last, old - old % p[15] + p[15]
        if d < 0 or (d == 0 and frac == 0) then
          d, frac, last = 0, 0, 0
        else
          local mostUs, mostFrac = most, p[8]
          if mostUs == NO_SPAN then mostUs, mostFrac = wait + last, 0 end
          if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac, dirty = mostUs, mostFrac, true end
        end
      else
        local found
        d, frac, dirty, found = convertQueue(p, s)
        s, last = found and spack('<c0i7I7I7', p[4], now + d, frac, 0) or nil, 0
      end
    end
    local ok = true
    if most ~= NO_SPAN then
      local us, f = d + p[5], frac + p[6]
      if f >= p[12] then us, f = us + 1, f - p[12] end
      ok = us < most or (us == most and f <= p[8])
    end
    if wait ~= NO_SPAN and (d > wait or (d == wait and frac > 0)) then ok = false end
    return d, frac, last, dirty, ok, s or nil, old
  end
  pay[7] = function(p, n, d, frac, last)
    if n > 0 then
      local us, f = p[5], p[6]
      if n ~= p[3] then us, f = rare().times(n, p[10], p[11], p[12]) end
      d, frac = d + us, frac + f
      if frac >= p[12] then d, frac = d + 1, frac - p[12] end
      if p[7] == NO_SPAN then last = f > 0 and us + 1 or us end
    end
    local due = now + d
    return spack('<c0i7I7I7', p[4], now + (d - last), frac, last), due - due % p[15] + p[15]
  end
  left[7] = general and function(p, d, frac)
    if p[9] ~= NO_SPAN and (d > p[9] or (d == p[9] and frac > 0)) then return 0 end
    if p[7] == NO_SPAN then return p[3] end
    local us, f = p[7] - d, p[8] - frac
    if f < 0 then us, f = us - 1, f + p[12] end
    if us < 0 then return 0 end
    return rare().units(us, f, p[10], p[11], p[12], p[13])
  end
end

if kinds % 1024 >= 512 then
  -- 9: a limit of count zero. It has no state, and what it finds is as if of another algorithm.
  SPEC[9] = '<BBI5'
  look[9] = function(p, s) return nil, nil, nil, s and true or false, p[3] == 0 end
  pay[9] = function() return false end
  left[9] = general and function() return 0 end
end
