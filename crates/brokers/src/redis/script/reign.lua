-- Which epoch a stream has; it stands before publishing and reading.
-- A Redis that was started or promoted may lack the end of what an earlier one had told, and would give the same offsets
-- to other publications. So an epoch belongs to one reign: the first who looks at a stream in another reign begins a new
-- epoch there, which remembers the one before and the offset up to which both are the same.

-- Epoch and offset of the top, epoch before and offset inherited from it (false = none).
-- `fresh` is an epoch that nobody had, `run` the id of the process ("" = unknown), `turn` larger for each time that it was
-- promoted.
local function reigned(stream, meta, fresh, run, turn)
  local held = redis.call('HMGET', meta, 'e', 'o', 'r', 't', 'p', 'b')
  local epoch, offset = held[1], held[2] or '0'
  if not epoch then
    redis.call('DEL', stream, meta)
    redis.call('HSET', meta, 'e', fresh, 'r', run, 't', turn)
    return fresh, '0', false, false
  end
  local same = run == '' or (run == held[3] and tonumber(turn) <= tonumber(held[4] or '0'))
  if same then return epoch, offset, held[5], held[6] end
  redis.call('HSET', meta, 'e', fresh, 'r', run, 't', turn, 'p', epoch, 'b', offset)
  return fresh, offset, epoch, offset
end

