-- Adds a member or renews it.
-- ARGV: 1 now in ms, 2 the end of the member in ms, 3 client, 4 member, 5 its ttl in ms
local client, member, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5])
local old = redis.call('HGET', members, client)
if old ~= member then
  redis.call('HSET', members, client, member)
  if old then count_user(user_of(old), -1) end
  count_user(user_of(member), 1)
end
redis.call('ZADD', ends, ARGV[2], client)
sweep(ARGV[1], 100)
keep(ends, ttl)
keep(members, ttl)
keep(users, ttl)
return 0
