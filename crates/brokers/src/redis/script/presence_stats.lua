-- How many members and users a channel has, if none is left that has to be taken out first.
-- ARGV: 1 now in ms, 2 most members to take out
-- Reply: members, users, 1 if there may be more to take out: then the call is to be repeated.
local most = tonumber(ARGV[2])
local more = 0
if sweep(ARGV[1], most) == most then more = 1 end
local sorted, counted = redis.call('ZCARD', ends), redis.call('HLEN', users)
if not in_fields then return { sorted, counted, more } end
local both = counted + redis.call('HLEN', tallies)
if counted > 0 and both > counted then -- some are in the sorted set yet; a user counts once
  for _, user in ipairs(redis.call('HKEYS', users)) do
    both = both - redis.call('HEXISTS', tallies, user)
  end
end
return { sorted + redis.call('HLEN', clients), both, more }
