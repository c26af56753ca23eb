-- Members whose ends are those of hash fields: Redis takes them out itself. It stands between presence.lua and what uses it.
-- A member is in the sorted set or here. One that was in the sorted set when the Redis became able to do this is seen
-- there until its next renewal puts it here, or its time is over. It may be in both after a master that cannot do this
-- was one for a while: who reads then counts it once.
-- Whoever sets a field sets its end in the same call: so an older Redis that is a replica drops both, and keeps nothing.

-- Ends of one user that are told apart; beyond, they are rounded up to this part of the time that members have.
local ENDS_MAX = 16

-- A user is there until the last of its clients is gone, also where some of them were taken out without a word. So each user
-- has a field that ends with the last of its clients, and in it how many of them end when: "1" for one, whose end is
-- that of the field, and for more a map from ends to counts. To be called before a member changes: `client` is who counts
-- with its end so far, `to` a new end that counts; either may be nil.
local function tally(user, client, to, now, ttl)
  local held = redis.call('HGET', tallies, user)
  if held == '1' and client and to then -- which is by far the most frequent
    redis.call('HPEXPIREAT', tallies, to, 'FIELDS', 1, user)
    return
  end
  local counts = {}
  if held == '1' then
    counts[redis.call('HPEXPIRETIME', tallies, 'FIELDS', 1, user)[1]] = 1
  elseif held then
    counts = cmsgpack.unpack(held)
  end
  if client then -- it counts at its end, or at what that was rounded up to
    local from, at = redis.call('HPEXPIRETIME', clients, 'FIELDS', 1, client)[1]
    for other in pairs(counts) do
      if other >= from and (not at or other < at) then at = other end
    end
    if at then counts[at] = counts[at] - 1 end
  end
  if to then counts[to] = (counts[to] or 0) + 1 end
  local left, different, all, last = {}, 0, 0, 0
  for at, count in pairs(counts) do
    if count > 0 and at > now then
      left[at] = count
      different, all, last = different + 1, all + count, math.max(last, at)
    end
  end
  if different > ENDS_MAX and ttl then
    local unit, rounded = math.ceil(ttl / ENDS_MAX), {}
    for at, count in pairs(left) do
      local up = math.ceil(at / unit) * unit
      rounded[up] = (rounded[up] or 0) + count
    end
    left = rounded
  end
  if all == 0 then
    redis.call('HDEL', tallies, user)
  else
    redis.call('HSET', tallies, user, all == 1 and '1' or cmsgpack.pack(left))
    redis.call('HPEXPIREAT', tallies, last, 'FIELDS', 1, user)
  end
end

-- Takes a client out, if it is here.
local function drop_field(client, now)
  local member = redis.call('HGET', clients, client)
  if member then
    tally(user_of(member), client, nil, now)
    redis.call('HDEL', clients, client)
  end
end

