-- drain.lua reads the queue of an older epoch.
--
-- KEYS[1] the pointer, as in head.lua; KEYS[2] q of the older epoch. ARGV[3] the id after which to begin, '' for the beginning; ARGV[4] at
-- most how many.
--
-- Returns 'ok', then ids, each with what q has of it.

local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local out = {'ok'}
for _, entry in ipairs(call('XRANGE', KEYS[2], from, '+', 'COUNT', ARGV[4]) or {}) do
  out[#out + 1] = entry[1]
  out[#out + 1] = entry[2][2]
end
return out
