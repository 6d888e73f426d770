-- What every script that works on states begins with: the head of the call. The texts of the others follow it, as script.go
-- puts them together. docs/redis.md explains the whole.
--
-- KEYS     1..strings are read with one MGET: states, lockouts. What follows are the sorted sets of holders, two a key:
--          who holds a slot, and who released before acquiring.
-- ARGV[1]  packed numbers, little endian, no padding:
--          timed B, kinds H (bit k: a spec of kind k follows; bit 15: more than plain charges), takes B, specs B, strings H,
--          now i8 (µs since 1970; read only if timed is 1), then the specs, each: kind B, flags B, cost I5, and what SPEC
--          says of its kind; then what the script itself says.
--
-- Units are whole microseconds. Every number, sum and product here is below 2^53, which a double holds exactly, or says
-- how it is kept exact. Times are from 1850 to 2095 and spans up to 36500 days (3.2e15); a time minus a time may pass 2^53
-- and is then only compared with a span. Counts, bursts and costs are up to 1e12, fractions of a µs below 1e15.
--
-- A state is a string: format, the numbers of the limit that judged it last, and what that limit remembers:
--   1 token bucket, a token takes whole µs     whole I7, burst I5 | full at i7                              20 bytes
--   2 token bucket                             whole I7, rem I7, den I7, burst I5 | full at i7, frac I7     41
--   3 fixed window                             window I7 | start i7, end i7, count I5                       27
--   4 sliding log                              period I7 | times i7 …, ascending                            8 + 7n
--   5 sliding window                           period I7, cells B | newest cell i7, n B, counts I6 …        17 + 6n
--   6 leaky bucket                             whole, rem, den I7, capacity I5, max_wait+1 I7 |
--                                              empty at, less what the last charge added, i7, frac I7,
--                                              what the last charge added I7                                55
--   7 concurrency                              | latest end of a slot i7, of a tombstone i7                 15
--   8 lockout                                  denials I5, first, until i7, length, ladder, within I7       41
-- Any other is as if never seen, and counted.
--
-- Time counts here: a call makes few functions and tables, and what is rarely needed is made when it is.

local call = redis.call
local sunpack, spack = struct.unpack, struct.pack
local byte, sub, rep, format = string.byte, string.sub, string.rep, string.format
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local NO_SPAN = -1

local a, K = ARGV[1], KEYS
local timed, kinds, takes, specs, strings, now, pos = sunpack('<BHBBHi8', a)
if timed == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local general = kinds >= 32768
local unknown = 0         -- states in a format that is not known
