-- Forgets a map: entries, stream, epoch, results of idempotency keys. Tells the nodes of its subscribers.
-- KEYS: 1 to 5 as in map.lua, 6 clearing
-- ARGV: 1 letters that name this clearing, 2 ttl of results in ms, 3 PUBLISH, 4 record
redis.call('SET', KEYS[6], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[4], KEYS[5])
redis.call(ARGV[3], KEYS[3], ARGV[4])
return 0
