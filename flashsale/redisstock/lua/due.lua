-- due.lua lists pending reservations past their deadline, oldest first, and drops from the index what it finds decided.
--
-- KEYS 1 to 5 of head.lua. ARGV[3] at most how many reservations; ARGV[4] at most how many members of the index are looked at.
--
-- Returns 'ok', 1 if there may be more and 0 if not, then rids, each with its value of res.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local limit, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local past = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
call('HGET', RES, '') -- raises now if it is no hash
local out, gone, shrunk = {'ok', 0}, {}, {}
local found, looked = 0, 0
while looked < #past and found < limit do
  local member, score = past[looked + 1], past[looked + 2]
  local rids = {}
  for rid in string.gmatch(sub(member, 18), '[^,]+') do rids[#rids + 1] = rid end
  local pending = {}
  for i, v in ipairs(call('HMGET', RES, unpack(rids))) do
    if v and byte(v) == 1 then
      pending[#pending + 1] = rids[i]
      if found < limit then
        found = found + 1
        out[#out + 1] = rids[i]
        out[#out + 1] = v
      end
    end
  end
  if #pending < #rids then
    gone[#gone + 1] = member
    if #pending > 0 then
      shrunk[#shrunk + 1] = score
      shrunk[#shrunk + 1] = sub(member, 1, 17) .. table.concat(pending, ',')
    end
  end
  looked = looked + 2
end
-- Removing comes first: it needs no memory, see apply.lua.
if #gone > 0 then call('ZREM', DUE, unpack(gone)) end
if #shrunk > 0 then call('ZADD', DUE, unpack(shrunk)) end
if found < limit and #past == 2 * most then out[2] = 1 end
return out
