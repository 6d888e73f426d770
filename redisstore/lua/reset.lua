-- reset.lua forgets a key. KEYS: everything that is kept of it. Returns "ok".
redis.call('DEL', unpack(KEYS))
return 'ok'
