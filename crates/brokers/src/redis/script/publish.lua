-- Publishes once: idempotency, version, position, storage and distribution in one moment.
-- KEYS: 1 stream, 2 meta, 3 feed, 4 result (only with an idempotency key)
-- ARGV: 1 record, 2 epoch if there is none yet, 3 publications kept at least (0 = no history), 4 ttl of the stream in ms,
--       5 ttl of meta in ms (0 = for ever), 6 version (0 = none), 7 epoch of the version, 8 ttl of the result in ms,
--       9 whether it is a delta (1 or 0), 10 the command that distributes (PUBLISH, in a Cluster SPUBLISH); last the reign
-- Reply: "offset epoch" of the publication, of the first one with this key, or of the top if the version is not newer;
--        "" without a place in a stream.
-- Each call costs about a microsecond: the usual publication has six, and reads the three fields of its reign.
local call = redis.call
local stream, meta, result = KEYS[1], KEYS[2], KEYS[4]
local record, version = ARGV[1], ARGV[6]

-- Not the first that is written: a Redis without memory refuses the first of a script if it takes some, and nothing later.
local function live_on(key, ttl)
  if ttl ~= '0' then call('PEXPIRE', key, ttl) else call('PERSIST', key) end
end

if result then
  local first = call('GET', result)
  if first then
    call('SET', result, first, 'KEEPTTL') -- a WAIT that follows waits for what was written only: so for the first one, too
    return first
  end
end
local position = ''
if ARGV[3] ~= '0' then
  local epoch = reigned(stream, meta, ARGV[2])
  if version ~= '0' then
    local held = call('HMGET', meta, 'v', 'w', 'o')
    local known = held[1]
    if known and (ARGV[7] == '' or ARGV[7] == held[2]) then
      -- Decimal texts without leading zeros; as numbers they would lose digits.
      local newer = #version > #known or (#version == #known and version > known)
      if not newer then
        live_on(meta, ARGV[5])
        call('HSET', meta, 'e', epoch) -- for the same reason
        return (held[3] or '0') .. ' ' .. epoch
      end
    end
  end
  local number = call('HINCRBY', meta, 'o', 1)
  live_on(meta, ARGV[5])
  local offset = string.format('%.0f', number)
  local before = ARGV[9] == '1' and call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  -- "~" drops whole nodes of the stream only. Without it the same memory is held, and each call walks past what a node has
  -- marked as deleted: up to 1.4 times the time of the Redis. So readers look at the newest ones themselves.
  local id = offset .. '-0'
  local added = redis.pcall('XADD', stream, 'MAXLEN', '~', ARGV[3], id, 'd', record)
  if type(added) == 'table' and (string.find(added.err, 'equal or smaller', 1, true) or string.find(added.err, 'exhausted', 1, true)) then
    -- Something that is none of ours stands where this has to: the stream is lost, and begins anew with an epoch of its own.
    epoch = ARGV[2]
    call('DEL', stream)
    call('HDEL', meta, 'p', 'b')
    call('HSET', meta, 'e', epoch)
    added = redis.pcall('XADD', stream, id, 'd', record)
  end
  if type(added) == 'table' then -- refused: this offset is the next one's
    call('HINCRBY', meta, 'o', -1)
    return added
  end
  call('PEXPIRE', stream, ARGV[4])
  if version ~= '0' then call('HSET', meta, 'v', version, 'w', ARGV[7]) end
  position = offset .. ' ' .. epoch
  -- Field 15 of the record, with its length, which is below 128.
  record = record .. '\122' .. string.char(#position) .. position
  if before and before[1] == string.format('%.0f-0', number - 1) then
    -- Field 14: the record before it, with its length as Protobuf writes it.
    local last, bytes = before[2][2], ''
    local length = #last
    while length > 127 do
      bytes = bytes .. string.char(length % 128 + 128)
      length = math.floor(length / 128)
    end
    record = record .. '\114' .. bytes .. string.char(length) .. last
  end
end
-- What can be refused comes before what cannot be taken back.
if result then call('SET', result, position, 'PX', ARGV[8]) end
call(ARGV[10], KEYS[3], record)
return position
