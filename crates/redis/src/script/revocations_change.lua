-- Changes the blocks and revocations of all nodes atomically: the entry, the position, PUBLISH.
-- KEYS: 1 blocked, 2 revoked, 3 invalidated: sorted sets of ends; 4 before, 5 version: hashes; 6 changes (PUB/SUB)
-- ARGV: 1 now in ms, 2 the number of the sorted set, 3 member, 4 its end in ms or +inf; empty to remove it,
--       5 issued_before, empty for other sets than 3, 6 record of the change, 7 new epoch in case there is none,
--       8 PUBLISH, in a Cluster SPUBLISH, 9 not empty: nothing is changed if there is an entry
-- Reply: "offset epoch" after the change; nil without one, also if the entry has a later issued_before and lasts as long: a call can
-- wait in a connection until after a newer one.
local call = redis.call
local set, member = KEYS[tonumber(ARGV[2])], ARGV[3]
local known_end = call('ZSCORE', set, member)
if known_end and ARGV[9] ~= '' then return false end
if known_end and ARGV[5] ~= '' and tonumber(call('HGET', KEYS[4], member) or 0) > tonumber(ARGV[5]) then
  if known_end == 'inf' or ARGV[4] ~= '+inf' and tonumber(known_end) >= tonumber(ARGV[4]) then return false end
end
-- A Redis without free memory refuses commands only until the first write of a script, so the entry comes first.
if ARGV[4] == '' then
  call('ZREM', set, member)
else
  call('ZADD', set, ARGV[4], member)
  if ARGV[5] ~= '' then call('HSET', KEYS[4], member, ARGV[5]) end
end
for number = 1, 3 do
  for _, ended in ipairs(call('ZRANGEBYSCORE', KEYS[number], '-inf', ARGV[1], 'LIMIT', 0, 100)) do
    call('ZREM', KEYS[number], ended)
    if number == 3 then call('HDEL', KEYS[4], ended) end
  end
end
call('HSETNX', KEYS[5], 'e', ARGV[7])
local offset = string.format('%.0f', call('HINCRBY', KEYS[5], 'v', 1))
local position = offset .. ' ' .. call('HGET', KEYS[5], 'e')
-- Field 15 of the record; its length is below 128.
call(ARGV[8], KEYS[6], ARGV[6] .. '\122' .. string.char(#position) .. position)
return position
