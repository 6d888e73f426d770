-- take.lua decides a batch of takes in their order: each sees what those before it charged. Of each it first computes
-- everything, then notes what to write if all of it passes; Redis is written to at the end (of sets of holders, as each take
-- passes). Nothing raises once something is written, and a take that cannot be decided is as if it had not been sent.
--
-- KEYS, ARGV[1]: see head.lua; at most 255 specs. After the specs, for each take: charges B, whether it is plain B, then for
-- each charge:
--   spec B (from 1), key H (index in KEYS); if the spec has a lockout, its key H; if it is a concurrency limit, the index of
--   its sets H and the holder: length B, bytes.
-- A spec's flags: 1 and 2 the mode (0 pay, 1 check, 2 settle, 3 shadow), 4 the cost can never fit, 8 has a lockout, whose
-- numbers follow its others: after I5, within, for, longest I7.
--
-- Returns one string: now i8, states of an unknown format H, then for each charge of each take:
--   flags B: 1 it passes, 2 a state follows, 4 charged, 8 locked out, 16 an amount follows, 32 the clocks differ too far for a
--   calendar, 64 a key is of a foreign type (of every charge of the take, and nothing ran);
--   then the state before the charge, as it is stored or, of a log and of holders, in short:
--     4, live H, newest i7, the one whose death makes room i7 · 7, live I6, latest end i7, facts B (1 holds a slot, 2 gone);
--   then, if locked out, µs until it opens I7; then the amount that settle charged I6.

local P, L = {}, {}
for i = 1, specs do
  local p = {sunpack(SPEC[byte(a, pos)], a, pos)}
  pos = p[#p]
  if p[2] >= 8 then
    p[2] = p[2] - 8
    local after, within, base, longest
    after, within, base, longest, pos = sunpack('<I5I7I7I7', a, pos)
    L[i] = {after, within, base, longest}
  end
  P[i] = p
end

local out, m = {false}, 1
local take -- decides a take of any charges; only where there is one that is not plain

if general then
  -- current returns the state of a key as the takes before left it.
  local function current(k)
    local s = N[k]
    if s == nil then s = S[k] end
    return s
  end

  -- readLock returns denials, first, until, length of a lockout's state.
  local function readLock(s)
    if not s then return 0, 0, 0, 0 end
    if rare().known(s) ~= 8 then return 0, 0, 0, 0 end
    return sunpack('<I5i7i7I7', s, 2)
  end

  -- lockout judges a charge's lockout before its limit, and after it if the limit denied. It returns how long the key is shut
  -- (0: it is not), then the state to write, if it changed, and until when it matters. denied is nil before the limit is asked.
  local function lockout(l, s, cost, denied)
    local denials, first, till, length = readLock(s)
    local after, within, base, longest = l[1], l[2], l[3], l[4]
    local ladder, changed = longest, false
    if length > 0 and till > now then
      if till - now <= longest then return till - now end
      if cost == 0 then return longest end
      till = now + longest
      ladder, within = sunpack('<I7I7', s, 28)
      changed = true
    elseif denied then
      changed = true
      if first > now then first = now end
      if denials == 0 or (first + within < now and after > 1) then denials, first = 0, now end
      denials = denials + 1
      if denials >= after then
        local since = now - till
        if length == 0 or since > longest then
          length = base
        elseif since <= base then
          length = min(2 * length, longest)
        else
          length = min(length, longest)
        end
        till, denials = now + length, 0
      end
    end
    if not changed then return 0 end
    local due = now
    if length > 0 then due = till + ladder + 1 end
    if denials > 0 then due = max(due, first + within + 1) end
    local shut = 0
    if length > 0 and till > now then shut = till - now end
    return shut, spack('<BI5i7i7I7I7I7', 8, denials, first, till, length, ladder, within), due
  end

  -- judge fills in what is known of one charge before anything of its take is written.
  local function judge(c)
    local p = P[c.spec]
    local kind, mode, cost = p[1], p[2] % 4, p[3]
    local ok
    if kind == 8 then
      c.x, c.y, c.z, c.dirty, ok, c.s = lookHolders(p, current(c.k), c.set, c.holder)
      if not c.x then return 64 end
    else
      c.x, c.y, c.z, c.dirty, ok, c.s, c.old = look[kind](p, current(c.k))
      if kind == 4 and not c.x then return 32 end
    end
    c.fits = ok
    c.ok = cost == 0 or (ok and p[2] < 4)
    c.shut = 0
    if mode == 2 then
      c.ok = true
    elseif c.lock then
      local l, s = L[c.spec], current(c.lock)
      c.shut, c.newLock, c.lockDue = lockout(l, s, cost, false)
      if c.shut == 0 and not c.ok then c.shut, c.newLock, c.lockDue = lockout(l, s, cost, true) end
      if c.shut > 0 then c.ok = false end
    end
    return 0
  end

  -- amountOf is what a charge takes when its part of the take is let through.
  local function amountOf(c, p)
    local mode, cost = p[2] % 4, p[3]
    if mode == 1 or cost == 0 then return 0 end
    if mode ~= 2 then return cost end
    if p[1] == 8 then return c.fits and 1 or 0 end
    if c.fits then return cost end
    return min(cost, left[p[1]](p, c.x, c.y, c.z))
  end

  -- finish notes what to write for one charge and answers it.
  local function finish(c, through)
    local p = P[c.spec]
    local mode = p[2] % 4
    local amount = through and c.ok and amountOf(c, p) or 0
    if amount > 0 or (c.dirty and p[3] > 0 and (mode == 0 or mode == 2)) then
      if p[1] == 8 then
        local state, due = payHolders(p, amount, c.x)
        put(c.k, state, due)
      else
        local state, due = pay[p[1]](p, amount, c.x, c.y, c.z)
        put(c.k, state, due, c.old)
      end
    end
    if c.newLock then put(c.lock, c.newLock, c.lockDue, S[c.lock] and now) end
    local flag = (c.ok and 1 or 0) + (c.s and 2 or 0) + (amount > 0 and 4 or 0) + (c.shut > 0 and 8 or 0)
    local settled = mode == 2 and amount > 0
    out[m + 1] = string.char(flag + (settled and 16 or 0))
    m = m + 1
    if c.s then
      m = m + 1
      out[m] = c.s
    end
    if c.shut > 0 then
      m = m + 1
      out[m] = spack('<I7', c.shut)
    end
    if settled then
      m = m + 1
      out[m] = spack('<I6', amount)
    end
  end

  local function read(c)
    local lo, hi
    c.spec, lo, hi = byte(a, pos, pos + 2)
    c.k, pos = lo + 256 * hi, pos + 3
    if L[c.spec] then c.lock, pos = sunpack('<H', a, pos) end
    if P[c.spec][1] == 8 then c.set, c.holder, pos = sunpack('<HBc0', a, pos) end
    return c
  end

  take = function(n)
    local charges, pass, shadow, bad = {}, true, true, 0
    for i = 1, n do
      local c = read({})
      charges[i] = c
      bad = max(bad, judge(c))
      local mode = P[c.spec][2] % 4
      if not c.ok then
        if mode == 3 then shadow = false elseif mode ~= 2 then pass = false end
      end
    end
    if bad > 0 then
      m = m + 1
      out[m] = rep(string.char(bad), n)
      return
    end
    for i = 1, n do
      local c = charges[i]
      finish(c, pass and (shadow or P[c.spec][2] % 4 ~= 3))
    end
  end
end

-- A plain take is one or more paying charges without lockouts or holders. Most are, and most of one; what is left over is
-- for take.
local J, Q, V, F, A, B, O
local function several(n)
  if not J then J, Q, V, F, A, B, O = {}, {}, {}, {}, {}, {}, {} end
  local pass, bad, changed = true, false, false
  for i = 1, n do
    local spec, lo, hi = byte(a, pos, pos + 2)
    local p, k = P[spec], lo + 256 * hi
    pos = pos + 3
    local s = N[k]
    if s == nil then s = S[k] end
    local kind, cost = p[1], p[3]
    local x, y, z, dirty, fits, found, old = look[kind](p, s)
    J[i], Q[i], F[i], O[i] = k, p, found, old
    if cost == 0 then
      V[i], A[i] = true, nil
    elseif fits and p[2] == 0 then
      V[i] = true
      A[i], B[i] = pay[kind](p, cost, x, y, z) -- what is written if all pass
    else
      V[i], pass = false, false
    end
    changed = changed or dirty
    if kind == 4 and not x then bad = true end
  end
  if bad then
    m = m + 1
    out[m] = rep(' ', n) -- 32: the clocks differ
    return
  end
  for i = 1, n do
    local found = F[i]
    if pass and A[i] then
      local k = J[i]
      if N[k] == nil then
        writes = writes + 1
        W[writes], E[k] = k, O[i]
      end
      N[k], T[k] = A[i], B[i]
      out[m + 1] = found and '\7' or '\5'
    else
      local p = Q[i]
      if changed and p[3] > 0 then -- a denied take writes what is healed or converted
        local k = J[i]
        local s = N[k]
        if s == nil then s = S[k] end
        local x, y, z, dirty = look[p[1]](p, s)
        if dirty then put(k, pay[p[1]](p, 0, x, y, z)) end
      end
      if V[i] then out[m + 1] = found and '\3' or '\1' else out[m + 1] = found and '\2' or '\0' end
    end
    m = m + 1
    if found then
      m = m + 1
      out[m] = found
    end
  end
end

for _ = 1, takes do
  local n, plain, spec, lo, hi = byte(a, pos, pos + 4)
  pos = pos + 2
  if plain == 0 then
    take(n)
  elseif n > 1 then
    several(n)
  else
    local p, k, flag = P[spec], lo + 256 * hi, nil
    pos = pos + 3
    local s, cost = N[k], p[3]
    if s == nil then s = S[k] end
    local x, y, z, dirty, fits, found, old = look[p[1]](p, s)
    local pays = fits and cost > 0 and p[2] == 0
    if pays or (dirty and cost > 0) then
      if N[k] == nil then
        writes = writes + 1
        W[writes], E[k] = k, old
      end
      N[k], T[k] = pay[p[1]](p, pays and cost or 0, x, y, z)
    end
    if pays then
      flag = found and '\7' or '\5'
    elseif cost == 0 then
      flag = found and '\3' or '\1'
    else
      flag = found and '\2' or '\0'
    end
    if p[1] == 4 and not x then flag, found = ' ', nil end -- 32: the clocks differ
    m = m + 1
    out[m] = flag
    if found then
      m = m + 1
      out[m] = found
    end
  end
end

out[1] = spack('<i8H', now, unknown)
flush()
return table.concat(out, '', 1, m)
