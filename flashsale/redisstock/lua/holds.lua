-- holds.lua tells what a user holds and has bought.
--
-- KEYS 1 to 4 of head.lua. ARGV[3] is the user.
--
-- Returns 'ok' and the value of user, '' if there is none.

if call('EXISTS', STOCK) == 0 then return {'rebuilding'} end
return {'ok', call('HGET', USER, ARGV[3]) or ''}
