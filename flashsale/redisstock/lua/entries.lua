-- entries.lua is a step of a walk through all reservations, as HSCAN makes it.
--
-- KEYS 1 to 3 of head.lua. ARGV[3] the cursor, '0' to begin with; ARGV[4] about how many.
--
-- Returns 'ok', the next cursor ('0' at the end), then rids, each with its value of res.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
local page = call('HSCAN', RES, ARGV[3], 'COUNT', ARGV[4])
local out = page[2]
table.insert(out, 1, page[1])
table.insert(out, 1, 'ok')
return out
