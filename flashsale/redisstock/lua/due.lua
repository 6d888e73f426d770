-- due.lua lists pending reservations past their deadline, oldest first, and drops from the index what it finds decided.
--
-- KEYS 1 to 5 of head.lua. ARGV[3] at most how many reservations; ARGV[4] how many members of the index that have
-- decided ones in them it looks at before it leaves the rest to another call.
--
-- Returns 'ok', 1 if it has to be asked again and 0 if this is all, then rids, each with its value of res.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local limit, most = tonumber(ARGV[3]), tonumber(ARGV[4])
call('HGET', RES, '') -- raises now if it is no hash
local out, gone, shrunk = {'ok', 0}, {}, {}
local found, at = 0, 0

-- look reads a member, whose reservations may all be decided by now, or some.
local function look(member, deadline)
  local rids, pending = {}, {}
  for rid in string.gmatch(sub(member, 18), '[^,]+') do rids[#rids + 1] = rid end
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
  if #pending == #rids then return end
  gone[#gone + 1] = member
  if #pending > 0 then
    shrunk[#shrunk + 1] = deadline
    shrunk[#shrunk + 1] = sub(member, 1, 17) .. table.concat(pending, ',')
  end
end

while found < limit and #gone < most do
  local past = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', at, 16)
  for i = 1, #past, 2 do
    if found < limit and #gone < most then look(past[i], past[i + 1]) end
  end
  at = at + 16
  if #past < 32 then break end
end
if found < limit and #gone >= most then out[2] = 1 end
-- Removing comes first: it needs no memory, see apply.lua.
if #gone > 0 then call('ZREM', DUE, unpack(gone)) end
if #shrunk > 0 then call('ZADD', DUE, unpack(shrunk)) end
return out
