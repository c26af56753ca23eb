-- A page of blocks or revocations, and the position of the list at that time.
-- KEYS: 1 a sorted set of ends, 2 version, 3 before (only for the set of invalidated tokens)
-- ARGV: 1 cursor of ZSCAN, 2 COUNT
-- Reply: "offset epoch" or ""; the next cursor; members, each followed by its end; issued_before of each member.
local version = redis.call('HMGET', KEYS[2], 'v', 'e')
local position = version[2] and (version[1] or '0') .. ' ' .. version[2] or ''
local found = redis.call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local before = {}
if KEYS[3] then
  for at = 1, #found[2], 2 do
    before[#before + 1] = redis.call('HGET', KEYS[3], found[2][at]) or '0'
  end
end
return { position, found[1], found[2], before }
