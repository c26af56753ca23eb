-- Publishes once: idempotency, version, position, storage and distribution in one moment.
-- KEYS: 1 stream, 2 meta, 3 feed, 4 result (only with an idempotency key)
-- ARGV: 1 record, 2 epoch if there is none yet, 3 publications kept (0 = no history), 4 ttl of the stream in ms,
--       5 ttl of meta in ms (0 = for ever), 6 version (0 = none), 7 epoch of the version, 8 ttl of the result in ms,
--       9 whether it is a delta (1 or 0), 10 the command that distributes (PUBLISH, in a Cluster SPUBLISH),
--       11 and 12 run and turn of the reign
-- Reply: "offset epoch" of the publication, of the first one with this key, or of the top if the version is not newer;
--        "" without a place in a stream.
local stream, meta, feed, result = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local record, kept, version = ARGV[1], tonumber(ARGV[3]), ARGV[6]

-- Decimal texts without leading zeros; as numbers they would lose digits.
local function newer(one, other)
  return #one > #other or (#one == #other and one > other)
end

-- A length as Protobuf writes it.
local function varint(number)
  local bytes = ''
  while number > 127 do
    bytes = bytes .. string.char(number % 128 + 128)
    number = math.floor(number / 128)
  end
  return bytes .. string.char(number)
end

if result then
  local first = redis.call('GET', result)
  if first then return first end
end
local position = ''
if kept > 0 then
  local epoch, top = reigned(stream, meta, ARGV[2], ARGV[11] or '', ARGV[12] or '0')
  if ARGV[5] ~= '0' then redis.call('PEXPIRE', meta, ARGV[5]) else redis.call('PERSIST', meta) end
  if version ~= '0' then
    local held = redis.call('HMGET', meta, 'v', 'w')
    local comparable = ARGV[7] == '' or ARGV[7] == (held[2] or '')
    if comparable and held[1] and not newer(version, held[1]) then
      return top .. ' ' .. epoch
    end
    redis.call('HSET', meta, 'v', version, 'w', ARGV[7])
  end
  local number = redis.call('HINCRBY', meta, 'o', 1)
  local offset = string.format('%.0f', number)
  local before = ARGV[9] == '1' and redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  redis.call('XADD', stream, 'MAXLEN', kept, offset .. '-0', 'd', record)
  redis.call('PEXPIRE', stream, ARGV[4])
  position = offset .. ' ' .. epoch
  -- Field 15 of the record, with its length, which is below 128.
  record = record .. '\122' .. string.char(#position) .. position
  if before and before[1] == string.format('%.0f-0', number - 1) then
    -- Field 14: the record before it.
    record = record .. '\114' .. varint(#before[2][2]) .. before[2][2]
  end
end
redis.call(ARGV[10], feed, record)
if result then redis.call('SET', result, position, 'PX', ARGV[8]) end
return position
