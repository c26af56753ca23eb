-- Publishes atomically: idempotency, version, position, storage and PUBLISH together.
-- KEYS: 1 stream, 2 meta, 3 feed, 4 result (only with an idempotency key)
-- ARGV: 1 record, 2 new epoch in case there is none, 3 size of the history (0 = none), 4 ttl of the stream in ms,
--       5 ttl of meta in ms (0 = for ever), 6 version (0 = none), 7 epoch of the version, 8 ttl of the result in ms,
--       9 whether it is a delta (1 or 0), 10 PUBLISH, in a Cluster SPUBLISH; the last two as in replication_history.lua
-- Reply: "offset epoch" of the publication, of the first one with this key, or of the top if the version is not newer;
--        "" without a position in a stream.
-- Each redis.call costs about a microsecond. A usual publication has six; one of them reads three fields for the epoch.
local call = redis.call
local stream, meta, result = KEYS[1], KEYS[2], KEYS[4]
local record, version = ARGV[1], ARGV[6]

-- Must not be the first write of the script. A Redis without free memory refuses commands only until the first write of
-- a script, and only commands that need memory, which PEXPIRE does not.
local function live_on(key, ttl)
  if ttl ~= '0' then call('PEXPIRE', key, ttl) else call('PERSIST', key) end
end

if result then
  local first = call('GET', result)
  if first then
    call('SET', result, first, 'KEEPTTL') -- WAIT covers only writes of this connection, so a repeated publication writes as well
    return first
  end
end
local position = ''
if ARGV[3] ~= '0' then
  local epoch = epoch_of(stream, meta, ARGV[2])
  if version ~= '0' then
    local held = call('HMGET', meta, 'v', 'w', 'o')
    local known = held[1]
    if known and (ARGV[7] == '' or ARGV[7] == held[2]) then
      -- Decimal texts without leading zeros; as numbers they would lose digits.
      local newer = #version > #known or (#version == #known and version > known)
      if not newer then
        live_on(meta, ARGV[5])
        call('HSET', meta, 'e', epoch) -- for WAIT, as above
        return (held[3] or '0') .. ' ' .. epoch
      end
    end
  end
  local number = call('HINCRBY', meta, 'o', 1)
  live_on(meta, ARGV[5])
  local offset = string.format('%.0f', number)
  local before = ARGV[9] == '1' and call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  -- "~" removes only whole nodes of the stream. Without it the memory is the same, and each call skips the entries
  -- that are marked as deleted in a node: up to 1.4 times the time of the Redis. So reads cut the page to the size of
  -- the history.
  local id = offset .. '-0'
  local added = redis.pcall('XADD', stream, 'MAXLEN', '~', ARGV[3], id, 'd', record)
  if type(added) == 'table' and (string.find(added.err, 'equal or smaller', 1, true) or string.find(added.err, 'exhausted', 1, true)) then
    -- An entry of another program is at this id or above: the stream is dropped and starts again with a new epoch.
    epoch = ARGV[2]
    call('DEL', stream)
    call('HDEL', meta, 'p', 'b')
    call('HSET', meta, 'e', epoch)
    added = redis.pcall('XADD', stream, id, 'd', record)
  end
  if type(added) == 'table' then -- refused: the next publication gets this offset
    call('HINCRBY', meta, 'o', -1)
    return added
  end
  call('PEXPIRE', stream, ARGV[4])
  if version ~= '0' then call('HSET', meta, 'v', version, 'w', ARGV[7]) end
  position = offset .. ' ' .. epoch
  -- Field 15 of the record; its length is below 128.
  record = record .. '\122' .. string.char(#position) .. position
  if before and before[1] == string.format('%.0f-0', number - 1) then
    -- Field 14: the record of the previous publication, with its length as a Protobuf varint.
    local last, bytes = before[2][2], ''
    local length = #last
    while length > 127 do
      bytes = bytes .. string.char(length % 128 + 128)
      length = math.floor(length / 128)
    end
    record = record .. '\114' .. bytes .. string.char(length) .. last
  end
end
-- Commands that can be refused come before the PUBLISH, which cannot be undone.
if result then call('SET', result, position, 'PX', ARGV[8]) end
call(ARGV[10], KEYS[3], record)
return position
