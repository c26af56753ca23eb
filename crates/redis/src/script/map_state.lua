-- Reads entries of a map, their number, and the top of its stream at one moment. Stands behind map.lua.
-- ARGV: 10 what to read ("none", "all", "key" or "page"), 11 the key, or the cursor of HSCAN, 12 COUNT, 13 the run_id that gave
--       the cursor ("" = any), 14 ttl of meta in ms of a map without changes (0 = for ever)
-- Reply: "offset epoch", number of entries, next cursor, run_id; keys, each followed by its entry. "lost" for a cursor of another
--        Redis, whose order of keys is another one.
local what, run = ARGV[10], ''
if ARGV[#ARGV - 1] == 'history' then run = string.sub(ARGV[#ARGV], 1, 16) end
if what == 'page' and ARGV[13] ~= '' and ARGV[13] ~= run then return 'lost' end
open()
expire(100)
live_on(meta, (top == 0 and count == 0) and ARGV[14] or ARGV[5])
local found, cursor = {}, '0'
if what == 'all' then
  found = call('HGETALL', entries)
elseif what == 'key' then
  local entry = call('HGET', entries, ARGV[11])
  if entry then found = { ARGV[11], entry } end
elseif what == 'page' then
  local page = call('HSCAN', entries, ARGV[11], 'COUNT', ARGV[12])
  cursor, found = page[1], page[2]
end
return { position_of(top), count, cursor, run, found }
