-- Shared by the scripts of presence; this part stands before each of them.
-- KEYS: 1 ends, 2 members, 3 users: a sorted set of ends and two hashes. Each call removes expired members.
local ends, members, users = KEYS[1], KEYS[2], KEYS[3]

-- The user of a member: field 1 after the version byte; missing when empty.
local function user_of(member)
  if string.byte(member, 1) ~= 1 or string.byte(member, 2) ~= 10 then return '' end
  local length, factor, at = 0, 1, 3
  while at < 8 do
    local byte = string.byte(member, at) or 0
    length = length + (byte % 128) * factor
    factor = factor * 128
    at = at + 1
    if byte < 128 then break end
  end
  return string.sub(member, at, at + length - 1)
end

local function count_user(user, by)
  if redis.call('HINCRBY', users, user, by) <= 0 then redis.call('HDEL', users, user) end
end

-- Removes a client from all three, if it is there.
local function drop(client)
  local member = redis.call('HGET', members, client)
  redis.call('ZREM', ends, client)
  if member then
    redis.call('HDEL', members, client)
    count_user(user_of(member), -1)
  end
end

-- Removes at most `most` expired members. Returns how many.
local function sweep(now, most)
  local gone = redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, most)
  for _, client in ipairs(gone) do drop(client) end
  return #gone
end

-- A key lives at least as long as its longest-lived member.
local function keep(key, ttl)
  if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
end

