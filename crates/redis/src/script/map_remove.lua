-- Removes a key of a map atomically. Stands behind map.lua.
-- ARGV: 10 key, 11 tags ("" = those of the entry), 12 time in ms (0 = none), 13 expected offset ("" = none), 14 expected epoch,
--       15 ttl of the result in ms
-- Reply: as in map_publish.lua.
local first = repeated()
if first then return first end
open()
local entry = call('HGET', entries, ARGV[10])
local other = mismatch(entry, ARGV[13], ARGV[14])
if other then return other end
if not entry then return suppressed('key_not_found') end
return publish(remove(ARGV[10], entry, ARGV[11], tonumber(ARGV[12])), ARGV[15])
