-- The epoch of a stream; this part stands before publishing and reading.
-- A Redis that was restarted or promoted may lack the last publications that an earlier master announced, and would give
-- their offsets to other publications. So an epoch belongs to one replication history. The first call in another history
-- creates a new epoch, which stores the previous one and the offset up to which both are the same.
-- ARGV, the last two: the word "history", then the id of the replication history: 16 digits of run_id and 16 of
--       master_replid, which changes with each promotion ("" = unknown). A connection appends them when it sends the call.
--       A redirected call has several pairs; the last one counts.

-- Returns the epoch, and field `g` of meta (store.lua); `fresh` is a new epoch in case it is needed.
local function epoch_of(stream, meta, fresh)
  local history = ARGV[#ARGV - 1] == 'history' and ARGV[#ARGV] or ''
  local held = redis.call('HMGET', meta, 'e', 'r', 'g')
  local epoch, holder, dropped = held[1], held[2], held[3]
  if not epoch then
    redis.call('DEL', stream, meta)
    redis.call('HSET', meta, 'e', fresh, 'r', history)
    return fresh, false
  end
  if history == '' or history == holder then return epoch, dropped end
  local before = redis.call('HMGET', meta, 'o', 'q')
  -- Connections of one process may have read its master_replid before and after a change, and each keeps its value for
  -- as long as it lives. Any of the known ids keeps the epoch, so such connections do not create epochs in turn.
  local known = before[2] or ''
  if string.find(' ' .. known .. ' ', ' ' .. history .. ' ', 1, true) then return epoch, dropped end
  local same = ''
  if holder and string.sub(holder, 1, 16) == string.sub(history, 1, 16) then
    same = known ~= '' and string.sub(holder .. ' ' .. known, 1, 263) or holder -- at most eight of 32 digits
  end
  redis.call('HSET', meta, 'e', fresh, 'r', history, 'q', same, 'p', epoch, 'b', before[1] or '0')
  return fresh, dropped
end

