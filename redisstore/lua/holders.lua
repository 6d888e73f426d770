-- Holders of concurrency limits. Who holds a slot and who released before acquiring are two sorted sets by end, so that a
-- take costs O(log n) whatever the number of holders; the state says that they count at all and when the last of each ends. Where
-- the state is another's, what lies in the sets is nobody's. z is the index of the first set in KEYS, the second follows.
-- 8: 5 count, 6 time to live
local lookHolders, payHolders, keepHolders, removeHolder, latestEnd
local NONE = -9007199254740991
if kinds % 512 >= 256 then
  SPEC[8] = '<BBI5c1I5I7'

  latestEnd = function(key, most)
    local r = call('ZREVRANGEBYSCORE', key, most, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    return r[2] and tonumber(r[2]) or NONE
  end

  -- lookHolders returns what is known of the holders and of this one (h), then as the others do; nil if a key is not ours.
  lookHolders = function(p, s, z, holder)
    local ttl, h, dirty = p[6], {live = 0, latest = NONE, tomb = NONE, z = z, holder = holder}, false
    if s and not (#s == 15 and sub(s, 1, 1) == p[4]) then
      rare().known(s)
      s, dirty = nil, true
    end
    if not s then
      h.fresh = true
      return h, nil, nil, dirty, p[3] <= p[5]
    end
    h.latest, h.tomb = sunpack('<i7i7', s, 2)
    local live = redis.pcall('ZCOUNT', K[z], '(' .. format('%.0f', now), '+inf')
    local gone = h.tomb ~= NONE and redis.pcall('ZSCORE', K[z + 1], holder)
    if type(live) == 'table' or type(gone) == 'table' then return nil end
    h.live = live
    h.gone = gone and tonumber(gone) > now
    local own = live > 0 and call('ZSCORE', K[z], holder)
    h.own = own and tonumber(own) > now
    local far, healed = now + 2 * ttl, now + ttl
    if h.latest > far then h.latest, h.healLive, dirty = max(healed, latestEnd(K[z], far)), true, true end
    if h.tomb > far then h.tomb, h.healTomb, dirty = max(healed, latestEnd(K[z + 1], far)), true, true end
    local ok = not h.gone and (h.own or live < p[5])
    local facts = (h.own and 1 or 0) + (h.gone and 2 or 0)
    return h, nil, nil, dirty, ok, spack('<BI6i7B', 7, live, h.latest, facts)
  end

  -- payHolders writes the sets at once, since the takes that follow count them. n = 1 gives the holder a slot, unless it has one.
  payHolders = function(p, n, h)
    local live, tombs = K[h.z], K[h.z + 1]
    local function heal(key)
      local far = '(' .. format('%.0f', now + 2 * p[6])
      for _, name in ipairs(call('ZRANGEBYSCORE', key, far, '+inf')) do call('ZADD', key, now + p[6], name) end
    end
    -- Changes nothing, but is refused where memory is short: first of all. What is of another type is deleted next.
    local r = redis.pcall('ZADD', live, 'XX', 'GT', '-inf', h.holder)
    if type(r) == 'table' and not (h.fresh and sub(r.err, 1, 9) == 'WRONGTYPE') then call('ZADD', live, 'XX', 'GT', '-inf', h.holder) end
    if h.fresh then
      call('DEL', live, tombs)
    else
      if h.healLive then heal(live) end
      if h.healTomb then heal(tombs) end
      call('ZREMRANGEBYSCORE', live, '-inf', now)
      if h.tomb ~= NONE then call('ZREMRANGEBYSCORE', tombs, '-inf', now) end
      if h.latest <= now then h.latest = NONE end
      if h.tomb <= now then h.tomb = NONE end
    end
    if n > 0 and not h.own then
      call('ZADD', live, now + p[6], h.holder)
      h.latest = max(h.latest, now + p[6])
    end
    return keepHolders(p, h)
  end

  -- keepHolders returns the state of the sets as they are, and keeps them as long as it.
  keepHolders = function(p, h)
    if h.latest == NONE and h.tomb == NONE then return false end
    local due = max(h.latest, h.tomb, now)
    local ms = max(2000000 + due - due % 1000000 - now, timed == 1 and 3600e6 or 1000)
    ms = format('%.0f', ceil(ms / 1000))
    call('PEXPIRE', K[h.z], ms)
    if h.tomb ~= NONE then call('PEXPIRE', K[h.z + 1], ms) end
    return spack('<c0i7i7', p[4], h.latest, h.tomb), due
  end

  -- removeHolder frees the slot of a holder that has one. payHolders has been called before it.
  removeHolder = function(p, h)
    call('ZREM', K[h.z], h.holder)
    h.latest = latestEnd(K[h.z], '+inf')
    return keepHolders(p, h)
  end
end
