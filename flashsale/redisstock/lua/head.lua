-- head.lua stands before every script but point.lua and remove.lua.
--
-- KEYS, all with one hash tag, those of the epoch in ARGV[1] from the second on; a script is given as many as it uses:
--   1 epoch   string: the pointer, which says what epoch is the current one
--   2 stock   hash: total, avail, held, sold (units), seq, pending (reservations), ver, status, opens, closes (µs), limit (units),
--             rate, next (jobs a second; next is a lower rate that waits, 0: none), level (jobs × 1e6), filled (µs), buried
--             (dead letters so far), calm (µs, until when a lull lasts), above (units that it gives; see lull.lua). It is written last when an epoch is loaded: without it the epoch is not live.
--   3 res     hash: rid -> state B, version i8, at i8, deadline i8 (µs, 0: none), then the ask:
--             quantity I4, user (length B, bytes), body (length B, 255: it came from SQL and has none; bytes), origin to the end
--   4 user    hash: user -> units I4, how many rids follow B, the rids with ',' between them: the latest 16 that hold or have bought
--   5 due     zset by deadline: seq of the first, ':', rids with ',' between them; taken in one call. Some may be decided already
--   6 q       stream with the group "c"; an entry's field "j" is: at i8, deadline i8, seq before the batch i8, place in the
--             batch B, rid, ',', the ask as above
--   7 marks   string: marks, u8 each, of what is known, in order: of a reservation its rid and its user, of a loaded buyer the user. Beyond
--             MARKS_MAX bytes nothing is appended, and there are no lulls
--   8 pulls   zset by time of pull: ids of q with ',' between them, pulled in one call. Some may be acknowledged already
--   9 dead    hash: id that the job had in q -> died at i8, deliveries I4, reason (length H, bytes), the job as in q
--   9 deadat  zset of the same ids by the number of their burial
--   11 ops    hash: id of a top-up or withdrawal -> 1 done, 0 refused
--   12 epochs set: the epochs that have keys
--
-- ARGV[1] the epoch that the caller knows; ARGV[2] the time in µs, '' for Redis's own. Integers packed little-endian.
--
-- Returns an array that begins with 'ok', or {'stale', the pointer} where that is another one, or {'rebuilding'} where the epoch is
-- not live. Nothing raises once something is written: what could is asked first, and ids and numbers are checked by the caller.

local call, byte, sub, char = redis.call, string.byte, string.sub, string.char
local pack, read = struct.pack, struct.unpack
local LULL, MARKS_MAX = 50000, 67108864 -- µs, bytes
local POINTER, STOCK, RES, USER, DUE, Q, MARKS, PULLS, DEAD, DEADAT, OPS, EPOCHS = unpack(KEYS)

local pointer = call('GET', POINTER) or ''
if pointer ~= ARGV[1] then return {'stale', pointer} end

local now = tonumber(ARGV[2])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
