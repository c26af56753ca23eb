-- A page of the members of a channel.
-- KEYS: 1 ends, 2 members, as in presence.lua
-- ARGV: 1 now in ms, 2 cursor of HSCAN, 3 COUNT
-- Reply: the next cursor; members. A short hash is one page, whatever COUNT says.
local now, found = tonumber(ARGV[1]), {}
local page = redis.call('HSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
for at = 1, #page[2], 2 do
  local ends = redis.call('ZSCORE', KEYS[1], page[2][at])
  if ends and tonumber(ends) > now then found[#found + 1] = page[2][at + 1] end
end
return { page[1], found }
