-- How many members and users a channel has, if none is left that has to be taken out first.
-- ARGV: 1 now in ms, 2 most members to take out
-- Reply: members, users, 1 if there may be more to take out: then the call is to be repeated.
local most = tonumber(ARGV[2])
local more = 0
if sweep(ARGV[1], most) == most then more = 1 end
local sorted, counted = redis.call('ZCARD', ends), redis.call('HLEN', users)
local others = sees_fields and more == 0 and redis.call('HLEN', clients) or 0
if others == 0 then return { sorted, counted, more } end
local both = counted + redis.call('HLEN', tallies)
if sorted > 0 then -- some are there yet, or not in fields by wish: who is in both counts once
  for _, client in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', '+inf')) do
    others = others - redis.call('HEXISTS', clients, client)
  end
  for _, user in ipairs(redis.call('HKEYS', users)) do
    both = both - redis.call('HEXISTS', tallies, user)
  end
end
return { sorted + others, both, more }
