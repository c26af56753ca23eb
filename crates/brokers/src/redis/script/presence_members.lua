-- The members of a channel at one moment.
-- KEYS: 1 ends, 2 members, 3 clients, as in presence.lua
-- ARGV: 1 now in ms; the third from the end as in presence.lua
-- Reply: members; false for one that is gone from one key only, which a lost write can do.
local form, found = KEYS[3] and ARGV[#ARGV - 2], {}
if form == 'fields' or form == 'sorted' then
  found = redis.call('HVALS', KEYS[3]) -- Redis leaves out whose time is over
end
local has_fields = #found > 0
local clients = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')
for from = 1, #clients, 4000 do -- unpack has a limit
  local to = math.min(from + 3999, #clients)
  local kept = has_fields and redis.call('HMGET', KEYS[3], unpack(clients, from, to)) or {}
  for at, member in ipairs(redis.call('HMGET', KEYS[2], unpack(clients, from, to))) do
    if not kept[at] then found[#found + 1] = member end
  end
end
return found
