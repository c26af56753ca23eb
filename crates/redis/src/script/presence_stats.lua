-- Counts members and users, after removing expired members.
-- ARGV: 1 now in ms, 2 most members to remove
-- Reply: members, users, 1 if there may be more to remove: then the call has to be repeated.
local most = tonumber(ARGV[2])
local more = 0
if sweep(ARGV[1], most) == most then more = 1 end
return { redis.call('ZCARD', ends), redis.call('HLEN', users), more }
