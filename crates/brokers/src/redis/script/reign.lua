-- Which epoch a stream has; it stands before publishing and reading.
-- A Redis that was started or promoted may lack the end of what an earlier one had told, and would give the same offsets
-- to other publications. So an epoch belongs to one reign: the first who looks at a stream in another reign begins a new
-- epoch there, which remembers the one before and the offset up to which both are the same.
-- ARGV, the last three: the word reign, the id of the process ("" = unknown), a number that is larger each time that it was
-- promoted. A connection adds them when it sends the call; of several, which a call has that was sent again elsewhere, the
-- last count.

-- The epoch; `fresh` is one that nobody had.
local function reigned(stream, meta, fresh)
  local run, turn = '', '0'
  if ARGV[#ARGV - 2] == 'reign' then run, turn = ARGV[#ARGV - 1], ARGV[#ARGV] end
  local held = redis.call('HMGET', meta, 'e', 'r', 't')
  local epoch = held[1]
  if not epoch then
    redis.call('DEL', stream, meta)
    redis.call('HSET', meta, 'e', fresh, 'r', run, 't', turn)
    return fresh
  end
  if run == '' or (run == held[2] and tonumber(turn) <= tonumber(held[3] or '0')) then return epoch end
  local offset = redis.call('HGET', meta, 'o') or '0'
  redis.call('HSET', meta, 'e', fresh, 'r', run, 't', turn, 'p', epoch, 'b', offset)
  return fresh
end

