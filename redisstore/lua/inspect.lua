-- inspect.lua returns what is stored of one key, as it is.
--
-- KEYS     1 its state, 2 its lockout, 3 its holders.
-- ARGV[1]  timed B, now i8 (µs; read only if timed is 1), little endian.
--
-- Returns now i8, then the state and the lockout, each: length H, bytes; then how many slots are alive I6.

local timed, now = struct.unpack('<Bi8', ARGV[1])
if timed == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local s = redis.call('MGET', KEYS[1], KEYS[2])
local state, lock = s[1] or '', s[2] or ''
local live = redis.pcall('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', now), '+inf')
if type(live) == 'table' then live = 0 end
if #state > 65535 then state = '?' end
if #lock > 65535 then lock = '?' end
return struct.pack('<i8H', now, #state) .. state .. struct.pack('<H', #lock) .. lock .. struct.pack('<I6', live)
