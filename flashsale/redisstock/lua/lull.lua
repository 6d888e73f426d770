-- lull.lua tells who is known, and calms the sale down: for a while nobody new is given more units than there are now.
--
-- KEYS 1 to 7 of head.lua. ARGV[3] how many marks the caller has, ARGV[4] the last of them, u8, ARGV[5] at most how many are wanted.
--
-- Returns 'ok', 'unset' if the epoch has no settings yet, from which mark on, how many there are, these marks, available, seq, how long
-- the lull lasts (µs, 0: there is none), above, status, and as the letters of reserve.lua C, N or E if it is not open, '' if it is.

local s = call('HMGET', STOCK, 'avail', 'seq', 'status', 'opens', 'closes', 'calm', 'above')
if not s[1] then return {'rebuilding'} end
local avail, status = tonumber(s[1]), s[3]
if status == '' then return {'unset'} end

local count, from = call('STRLEN', MARKS) / 8, tonumber(ARGV[3])
if from > count or from > 0 and call('GETRANGE', MARKS, 8 * from - 8, 8 * from - 1) ~= ARGV[4] then from = 0 end
local upto = math.min(count, from + ARGV[5])
local marks = upto > from and call('GETRANGE', MARKS, 8 * from, 8 * upto - 1) or ''

local shut = ''
if status ~= 'open' then shut = 'C'
elseif now < tonumber(s[4]) then shut = 'N'
elseif now >= tonumber(s[5]) then shut = 'E'
end

-- Units that came back in a lull are to be sold when it ends: it is not prolonged then.
local lasts, above = 0, 0
if shut == '' and upto == count and 8 * count < MARKS_MAX and s[6] then
  local calm = tonumber(s[6])
  above = tonumber(s[7])
  if now < calm and calm <= now + LULL and avail > above then
    lasts = calm - now
  else
    lasts, above = LULL, avail
    call('HSET', STOCK, 'calm', now + LULL, 'above', avail)
  end
end
return {'ok', from, count, marks, avail, tonumber(s[2]), lasts, above, status, shut}
