-- drop.lua removes what there is of an older epoch.
--
-- KEYS as in head.lua, but from the second on those of the older epoch. ARGV[3] the older epoch.
--
-- Returns 'ok'.

call('UNLINK', unpack(KEYS, 2, 11))
call('SREM', EPOCHS, ARGV[3])
return {'ok'}
