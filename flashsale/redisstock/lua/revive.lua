-- revive.lua puts dead letters back into the queue, in the order of their burial; those past their deadline, or not pending any more, are
-- dropped.
--
-- KEYS 1 to 10 of head.lua. ARGV from 3 on: ids, each once.
--
-- Returns 'ok', how many were put back.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
call('XLEN', Q) -- raises now if it is no stream
local found = {}
for i = 3, #ARGV do
  local letter, at = call('HGET', DEAD, ARGV[i]), call('ZSCORE', DEADAT, ARGV[i])
  if letter then
    local _, _, reason = read('<i8I4H', letter)
    found[#found + 1] = {id = ARGV[i], at = tonumber(at) or 0, job = sub(letter, 15 + reason)}
  end
end
table.sort(found, function(a, b) return a.at < b.at end)
for _, f in ipairs(found) do
  local _, deadline = read('<i8i8', f.job)
  local v = call('HGET', RES, string.match(f.job, '^([^,]+)', 26))
  f.back = v and byte(v) == 1 and now < deadline
end
local n = 0
for _, f in ipairs(found) do
  call('HDEL', DEAD, f.id)
  call('ZREM', DEADAT, f.id)
  if f.back then
    call('XADD', Q, '*', 'j', pack('<i8', now) .. sub(f.job, 9))
    n = n + 1
  end
end
return {'ok', n}
