-- Removes entries of a map whose time is over, in the order of their deadlines. Stands behind map.lua.
-- ARGV: 10 most entries to remove
-- Reply: milliseconds until it has to be called again; "" for a map without entries.
if call('EXISTS', entries) == 0 then return '' end
open()
if call('ZCARD', deadlines) < count then
  -- Deadlines are missing: Redis has evicted them, or the map was persistent before.
  for _, key in ipairs(call('HKEYS', entries)) do call('ZADD', deadlines, 'NX', text_of(now + ttl), key) end
  call('PEXPIRE', deadlines, ARGV[7])
end
live_on(meta, ARGV[5])
if expire(ARGV[10]) == tonumber(ARGV[10]) then return '0' end
local next = call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')
return next[2] and text_of(math.max(next[2] - now, 1)) or ''
