-- Each algorithm has three functions. p is a spec, s a state as it is stored.
--   look(p, s)           brings the state to now and under the limit: x, y, z for the others, whether what is stored
--                        differs (dirty), whether the cost fits, and the state to answer with (nil: never seen)
--   pay(p, n, x, y, z)   returns the state with n units charged, 0 to write it as it is, and how long it lives
--   left(p, x, y, z)     returns how many units there is room for
-- A spec's numbers: 1 kind, 2 flags, 3 cost, 4 the state's limit part, then by kind as said there. Only the kinds that the
-- call needs are defined: making a function takes time.
local look, pay, left = {}, {}, {}
local SPEC = {}
local after

if uses(1) or uses(2) then
  -- Token buckets: x is how long until the bucket is full, y the fraction of it.
  local function convertTokens(p, s, whole, rem, den, burst, fullUs, fullFrac, pace)
    local f = known(s)
    if f ~= 1 and f ~= 2 then return 0, 0, true, false end
    local oldWhole, oldRem, oldDen, oldBurst, at, frac
    if f == 1 then
      oldWhole, oldBurst, at = sunpack('<I7I5i7', s, 2)
      oldRem, oldDen, frac = 0, 1, 0
    else
      oldWhole, oldRem, oldDen, oldBurst, at, frac = sunpack('<I7I7I7I5i7I7', s, 2)
    end
    local d = at - now
    local mostUs, mostFrac = times(oldBurst, oldWhole, oldRem, oldDen)
    if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac = mostUs, mostFrac end
    if d < 0 or (d == 0 and frac == 0) then return 0, 0, false, false end
    local debt = (d + frac / oldDen) / (oldWhole + oldRem / oldDen)
    local level = min(oldBurst - debt, burst)
    d, frac = ceil((burst - level) * pace), 0
    if d > fullUs or (d == fullUs and frac > fullFrac) then d, frac = fullUs, fullFrac end
    return d, frac, true, true
  end

  -- 1: 5 inc, 6 full, 7 whole, 8 burst
  SPEC[1] = '<BBI5c13I7I7I7I5'
  look[1] = function(p, s)
    local full, d, dirty = p[6], 0, false
    if s then
      if #s == 20 and sub(s, 1, 13) == p[4] then
        d = sunpack('<i7', s, 14) - now
        if d <= 0 then d = 0 elseif d > full then d, dirty = full, true end
      else
        local _, found
        d, _, dirty, found = convertTokens(p, s, p[7], 0, 1, p[8], full, 0, p[7])
        s = found and spack('<c0i7', p[4], now + d) or nil
      end
    end
    return d, nil, nil, dirty, d + p[5] <= full, s
  end
  pay[1] = function(p, n, d)
    if n == p[3] then d = d + p[5] else d = d + n * p[7] end
    return spack('<c0i7', p[4], now + d), d
  end
  left[1] = function(p, d) return floor((p[6] - d) / p[7]) end

  -- 2: 5 inc, 6 its fraction, 7 full, 8 its fraction, 9 whole, 10 rem, 11 den, 12 burst, 13 pace as a double
  SPEC[2] = '<BBI5c27I7I7I7I7I7I7I7I5d'
  look[2] = function(p, s)
    local fullUs, fullFrac = p[7], p[8]
    local d, frac, dirty = 0, 0, false
    if s then
      if #s == 41 and sub(s, 1, 27) == p[4] then
        d, frac = sunpack('<i7I7', s, 28)
        d = d - now
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
    return d, frac, nil, dirty, us < fullUs or (us == fullUs and f <= fullFrac), s
  end
  pay[2] = function(p, n, d, frac)
    local us, f = p[5], p[6]
    if n ~= p[3] then us, f = times(n, p[9], p[10], p[11]) end
    d, frac = d + us, frac + f
    if frac >= p[11] then d, frac = d + 1, frac - p[11] end
    return spack('<c0i7I7', p[4], now + d, frac), d
  end
  left[2] = function(p, d, frac)
    local us, f = p[7] - d, p[8] - frac
    if f < 0 then us, f = us - 1, f + p[11] end
    return units(us, f, p[9], p[10], p[11], p[12])
  end
end

if uses(3) or uses(4) then
  -- Fixed windows: x is the start, y the end, z the count. A calendar's come in the spec, three of them; outside there is no
  -- answer, and look returns a nil x.
  local function lookFixed(p, s, start, stop)
    local count, dirty = 0, false
    if s then
      if #s == 27 and sub(s, 1, 8) == p[4] then
        local first, last, n = sunpack('<i7i7I5', s, 9)
        if n > 0 and first <= now and now < last then
          start, stop, count = first, last, n
        elseif not start then
          return nil
        elseif n > 0 and last > now then
          count = n
          if first - now <= stop - start then start, stop = first, last else dirty = true end
        end
      else
        known(s)
        s, dirty = nil, true
      end
    end
    if not start then return nil end
    return start, stop, count, dirty, count + p[3] <= p[5], s
  end
  local function payFixed(p, n, start, stop, count)
    return spack('<c0i7i7I5', p[4], start, stop, count + n), stop - now
  end
  local function leftFixed(p, start, stop, count) return max(0, p[5] - count) end

  -- 3: 5 count, 6 period
  SPEC[3] = '<BBI5c8I5I7'
  look[3] = function(p, s)
    local start = now - now % p[6]
    return lookFixed(p, s, start, start + p[6])
  end
  pay[3], left[3] = payFixed, leftFixed

  -- 4: 5 count, 6 to 9 the bounds of the windows
  SPEC[4] = '<BBI5c8I5i7i7i7i7'
  look[4] = function(p, s)
    for i = 6, 8 do
      if p[i] <= now and now < p[i + 1] then return lookFixed(p, s, p[i], p[i + 1]) end
    end
    return lookFixed(p, s)
  end
  pay[4], left[4] = payFixed, leftFixed
end

if uses(5) then
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

  -- Sliding logs: x is the log as stored (healed), y where its live part begins, z the time that decides. What is answered is
  -- no state but how many live, the newest of them, and the one whose death makes room.
  -- 5: 5 count, 6 period
  SPEC[5] = '<BBI5c8I5I7'
  look[5] = function(p, s)
    local cost, period, eff, dirty, from, n = p[3], p[6], now, false, 9, 0
    if s and sub(s, 1, 8) ~= p[4] or s and (#s - 8) % 7 ~= 0 then
      known(s)
      s, dirty = nil, true
    end
    if not s or #s == 8 then return p[4], 9, now, dirty, cost <= p[5], nil end
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
    if n > 0 then s = s .. rep(spack('<i7', eff), n) end
    if #s == 8 then return s, 0 end
    return s, sunpack('<i7', s, #s - 6) + p[6] - now
  end
  left[5] = function(p, s, from) return max(0, p[5] - (#s - from + 1) / 7) end
end

if uses(6) then
  -- Sliding windows: x has the counts, from the deciding cell back, y is the start of that cell, z how far inside it is.
  -- 6: 5 count, 6 length of a cell, 7 cells
  SPEC[6] = '<BBI5c9I5I7B'
  local COUNTS = {}
  local function countsOf(s)
    local n = byte(s, 17)
    if n == 0 then return {} end
    local f = COUNTS[n]
    if not f then
      f = '<' .. rep('I6', n)
      COUNTS[n] = f
    end
    local v = {sunpack(f, s, 18)}
    v[n + 1] = nil -- the position
    return v, n
  end
  look[6] = function(p, s)
    local length, k = p[6], p[7]
    local start, dirty, v = now - now % length, false, nil
    local inside = now - start
    if s then
      if sub(s, 1, 9) == p[4] and #s >= 17 and #s == 17 + 6 * byte(s, 17) then
        local newest, n = sunpack('<i7', s, 10), nil
        v, n = countsOf(s)
        if n and newest > start then
          if newest - now <= length then
            start, inside = newest, 0
          else
            local healed = {}
            for i = 0, k do healed[i + 1] = 0 end
            for i = 1, n do
              local back = max((start - (newest - (i - 1) * length)) / length, 0)
              if back <= k then healed[back + 1] = healed[back + 1] + v[i] end
            end
            v, dirty = healed, true
          end
        elseif n and newest < start then
          local shift = min((start - newest) / length, k + 1)
          local moved = {}
          for i = 1, shift do moved[i] = 0 end
          for i = 1, min(n, k + 1 - shift) do moved[shift + i] = v[i] end
          v = moved
        end
      else
        known(s)
        s, dirty = nil, true
      end
    end
    v = v or {}
    local room = p[5] - p[3]
    for i = 1, k do room = room - (v[i] or 0) end
    local old = v[k + 1] or 0
    return v, start, inside, dirty, room >= 0 and (old == 0 or fits(old, length - inside, room, length)), s
  end
  -- packCells writes counts without the zeros before the newest and after the oldest of them.
  local function packCells(p, v, start)
    local first, last = 1, p[7] + 1
    while last > 0 and (v[last] or 0) == 0 do last = last - 1 end
    while first < last and v[first] == 0 do first = first + 1 end
    if last == 0 then return spack('<c0i7B', p[4], start, 0), 0 end
    start = start - (first - 1) * p[6]
    local n = last - first + 1
    local f = n == 1 and '<c0i7BI6' or '<c0i7B' .. rep('I6', n)
    return spack(f, p[4], start, n, unpack(v, first, last)), start + (p[7] + 1) * p[6] - now
  end
  pay[6] = function(p, n, v, start)
    v[1] = (v[1] or 0) + n
    return packCells(p, v, start)
  end
  left[6] = function(p, v, start, inside)
    local length, k, room = p[6], p[7], p[5]
    for i = 1, k do room = room - (v[i] or 0) end
    local old, within = v[k + 1] or 0, length - inside
    if old == 0 then return max(0, room) end
    local weight = floor(old * (within / length))
    while not fits(old, within, weight, length) do weight = weight + 1 end
    while weight > 0 and fits(old, within, weight - 1, length) do weight = weight - 1 end
    return max(0, room - weight)
  end
end

if uses(7) then
  -- Leaky buckets: x is how long until the queue is empty, y the fraction of it, z what the last charge added where there is
  -- no capacity.
  -- 7: 5 inc, 6 its fraction, 7 the capacity's span (NO_SPAN: none), 8 its fraction, 9 max_wait (NO_SPAN: none), 10 whole, 11 rem,
  --    12 den, 13 capacity, 14 pace as a double
  SPEC[7] = '<BBI5c34I7I7i8I7i8I7I7I7I5d'
  local function convertQueue(p, s)
    if known(s) ~= 6 then return 0, 0, true, false end
    local whole, rem, den, capacity, wait, at, frac, last = sunpack('<I7I7I7I5I7i7I7I7', s, 2)
    local d = at - now
    local mostUs, mostFrac = wait - 1 + last, 0
    if capacity > 0 then mostUs, mostFrac = times(capacity, whole, rem, den) end
    if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac = mostUs, mostFrac end
    if d < 0 or (d == 0 and frac == 0) then return 0, 0, false, false end
    local backlog = (d + frac / den) / (whole + rem / den)
    d, frac = min(ceil(backlog * p[14]), MAX_SPAN), 0
    if p[7] ~= NO_SPAN and d > p[7] then d, frac = p[7], p[8] end
    if p[9] ~= NO_SPAN and (d > p[9] or (d == p[9] and frac > 0)) then d, frac = p[9], 0 end
    return d, frac, true, true
  end
  look[7] = function(p, s)
    local d, frac, last, dirty = 0, 0, 0, false
    if s then
      if #s == 55 and sub(s, 1, 34) == p[4] then
        d, frac, last = sunpack('<i7I7I7', s, 35)
        d = d - now
        if d < 0 or (d == 0 and frac == 0) then
          d, frac, last = 0, 0, 0
        else
          local mostUs, mostFrac = p[7], p[8]
          if mostUs == NO_SPAN then mostUs, mostFrac = p[9] + last, 0 end
          if d > mostUs or (d == mostUs and frac > mostFrac) then d, frac, dirty = mostUs, mostFrac, true end
        end
      else
        local found
        d, frac, dirty, found = convertQueue(p, s)
        s = found and spack('<c0i7I7I7', p[4], now + d, frac, 0) or nil
      end
    end
    local ok = true
    if p[7] ~= NO_SPAN then
      local us, f = d + p[5], frac + p[6]
      if f >= p[12] then us, f = us + 1, f - p[12] end
      ok = us < p[7] or (us == p[7] and f <= p[8])
    end
    if p[9] ~= NO_SPAN and (d > p[9] or (d == p[9] and frac > 0)) then ok = false end
    return d, frac, last, dirty, ok, s
  end
  pay[7] = function(p, n, d, frac, last)
    if n > 0 then
      local us, f = p[5], p[6]
      if n ~= p[3] then us, f = times(n, p[10], p[11], p[12]) end
      d, frac = d + us, frac + f
      if frac >= p[12] then d, frac = d + 1, frac - p[12] end
      if p[7] == NO_SPAN then last = f > 0 and us + 1 or us end
    end
    return spack('<c0i7I7I7', p[4], now + d, frac, last), d
  end
  left[7] = function(p, d, frac)
    if p[9] ~= NO_SPAN and (d > p[9] or (d == p[9] and frac > 0)) then return 0 end
    if p[7] == NO_SPAN then return p[3] end
    local us, f = p[7] - d, p[8] - frac
    if f < 0 then us, f = us - 1, f + p[12] end
    if us < 0 then return 0 end
    return units(us, f, p[10], p[11], p[12], p[13])
  end
end

if uses(9) then
  -- 9: a limit of count zero. It has no state, and what it finds is as if of another algorithm.
  SPEC[9] = '<BBI5'
  look[9] = function(p, s) return nil, nil, nil, s and true or false, p[3] == 0, nil end
  pay[9] = function() return false, 0 end
  left[9] = function() return 0 end
end
