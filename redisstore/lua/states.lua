-- The states of a call, and how they are written.
--
-- By key index: the states as they were (false: none), as they will be (false: erased), until when those matter, and until
-- when those that were mattered if they stay in place.
local S, N, T, E = nil, {}, {}, {}
if strings > 0 then S = call('MGET', unpack(K, 1, strings)) end
local W, writes = {}, 0   -- the indexes of what to write

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
      due = due + -due % 1000000
      if old and old > due - 1000000 and #state == #S[k] and timed == 0 then
        call('SETRANGE', K[k], '0', state)
      else
        local ms = lives[due]
        if not ms then
          ms = max(1000000 + due - now, timed == 1 and 3600e6 or 1000)
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
