-- Which epoch a stream has; it stands before publishing and reading.
-- A Redis that was started or promoted may lack the end of what an earlier one had told, and would give the same offsets
-- to other publications. So an epoch belongs to one reign: the first who looks at a stream in another reign begins a new
-- epoch there, which remembers the one before and the offset up to which both are the same.
-- ARGV, the last two: the word reign, then 16 digits of the process and 16 of its replication id, which is another one after
-- each promotion ("" = unknown). A connection adds them when it sends the call; of several, which a call has that was sent
-- again elsewhere, the last count.

-- The epoch; `fresh` is one that nobody had.
local function reigned(stream, meta, fresh)
  local reign = ARGV[#ARGV - 1] == 'reign' and ARGV[#ARGV] or ''
  local held = redis.call('HMGET', meta, 'e', 'r')
  local epoch, holder = held[1], held[2]
  if not epoch then
    redis.call('DEL', stream, meta)
    redis.call('HSET', meta, 'e', fresh, 'r', reign)
    return fresh
  end
  if reign == '' or reign == holder then return epoch end
  local before = redis.call('HMGET', meta, 'o', 'q')
  -- Connections of one process that learnt its replication id before and after it changed take turns with one epoch, however
  -- often it changed: each keeps the one it learnt for as long as it lives.
  local known = before[2] or ''
  if string.find(' ' .. known .. ' ', ' ' .. reign .. ' ', 1, true) then return epoch end
  local same = ''
  if holder and string.sub(holder, 1, 16) == string.sub(reign, 1, 16) then
    same = known ~= '' and string.sub(holder .. ' ' .. known, 1, 263) or holder -- at most eight of 32 digits
  end
  redis.call('HSET', meta, 'e', fresh, 'r', reign, 'q', same, 'p', epoch, 'b', before[1] or '0')
  return fresh
end

