-- Changes fields of the status of a user; the others stay.
-- KEYS: 1 status
-- ARGV: 1 ttl in ms, then names of fields, each followed by its value
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 0
