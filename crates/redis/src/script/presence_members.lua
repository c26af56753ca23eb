-- The members of a channel at one moment.
-- KEYS: 1 ends, 2 members, as in presence.lua
-- ARGV: 1 now in ms
-- Reply: members; false for one that is missing in one key, after a lost write.
local found = {}
local clients = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')
for from = 1, #clients, 4000 do -- unpack has a limit
  local to = math.min(from + 3999, #clients)
  for _, member in ipairs(redis.call('HMGET', KEYS[2], unpack(clients, from, to))) do
    found[#found + 1] = member
  end
end
return found
