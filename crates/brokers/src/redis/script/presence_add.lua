-- Adds a member or renews it.
-- ARGV: 1 now in ms, 2 the end of the member in ms, 3 client, 4 member, 5 its ttl in ms
local client, member, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5])

local function add_field(now, to)
  local old = redis.call('HGET', clients, client)
  if not old and redis.call('EXISTS', ends) == 1 then drop(client) end
  local user, counted = user_of(member), old and client
  if old and old ~= member and user_of(old) ~= user then
    tally(user_of(old), client, nil, now)
    counted = nil
  end
  tally(user, counted, to, now, ttl)
  if old ~= member then redis.call('HSET', clients, client, member) end
  redis.call('HPEXPIREAT', clients, to, 'FIELDS', 1, client)
end

if in_fields then
  add_field(tonumber(ARGV[1]), tonumber(ARGV[2]))
  return 0
end
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
