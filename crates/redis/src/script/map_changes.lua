-- Reads changes of a map, and the top of its stream at the same moment. Stands behind map.lua.
-- ARGV: 10 whether the newest come first (1 or 0), 11 the offset after which, or else before which ("" = none), 12 most changes,
--       13 ttl of meta in ms of a map without changes (0 = for ever)
-- Reply: "offset epoch"; ids with their fields.
open()
live_on(meta, (top == 0 and count == 0) and ARGV[13] or ARGV[5])
local from, to, since = math.max(top - size + 1, 1), top, tonumber(ARGV[11])
if since and ARGV[10] == '1' then
  to = math.min(to, since - 1)
elseif since then
  from = math.max(from, since + 1)
end
if from > to then return { position_of(top), {} } end
from, to = text_of(from) .. '-0', text_of(to) .. '-0'
if ARGV[10] == '1' then return { position_of(top), call('XREVRANGE', changes, to, from, 'COUNT', ARGV[12]) } end
return { position_of(top), call('XRANGE', changes, from, to, 'COUNT', ARGV[12]) }
