-- Stores the record of a publication at the next offset; this part stands before publishing and appending.
local call = redis.call

-- Must not be the first write of a script. A Redis without free memory refuses commands only until the first write of
-- a script, and only commands that need memory, which PEXPIRE does not.
local function live_on(key, ttl)
  if ttl ~= '0' then call('PEXPIRE', key, ttl) else call('PERSIST', key) end
end

local function varint(number)
  local bytes = ''
  while number > 127 do
    bytes = bytes .. string.char(number % 128 + 128)
    number = math.floor(number / 128)
  end
  return bytes .. string.char(number)
end

-- A Protobuf field with a length, and its content. `key` is its first byte.
local function field_of(key, content) return key .. varint(#content) .. content end

-- `dropped` is the newest offset that is missing for another reason than growing messages, or false in a stream without
-- any: there offsets have no gap. `name` is the field of the entry: "d", or "m" and the key of its message. `replaced` is
-- the offset of an entry of that message that is removed, or nil. The others are as in publish.lua.
-- Returns the position and the record with its position and base, for PUBLISH; or nil and the error of Redis.
local function store(stream, meta, epoch, dropped, fresh, record, size, ttl, meta_ttl, is_delta, name, replaced)
  local number = call('HINCRBY', meta, 'o', 1)
  live_on(meta, meta_ttl)
  local offset = string.format('%.0f', number)
  local before = is_delta == '1' and call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if dropped and call('EXISTS', stream) == 0 then dropped = string.format('%.0f', number - 1) end
  -- "~" removes only whole nodes of the stream. Without it the memory is the same, and each call skips the entries
  -- that are marked as deleted in a node: up to 1.4 times the time of the Redis. So reads cut the page to the size of
  -- the history. Offsets with gaps do not tell the size, so a stream with growing messages is trimmed exactly.
  local id = offset .. '-0'
  local added
  if dropped then
    added = redis.pcall('XADD', stream, id, name, record)
  else
    added = redis.pcall('XADD', stream, 'MAXLEN', '~', size, id, name, record)
  end
  if type(added) == 'table' and (string.find(added.err, 'equal or smaller', 1, true) or string.find(added.err, 'exhausted', 1, true)) then
    -- An entry of another program is at this id or above: the stream is dropped and starts again with a new epoch.
    epoch, dropped, replaced = fresh, dropped and string.format('%.0f', number - 1), nil
    call('DEL', stream)
    call('HDEL', meta, 'p', 'b')
    call('HSET', meta, 'e', epoch)
    added = redis.pcall('XADD', stream, id, name, record)
  end
  if type(added) == 'table' then -- refused: the next publication gets this offset
    call('HINCRBY', meta, 'o', -1)
    return nil, added
  end
  if dropped then
    if replaced then
      local old = call('XRANGE', stream, replaced .. '-0', replaced .. '-0')[1]
      if old and old[2][1] == name then call('XDEL', stream, old[1]) end
    end
    local over = call('XLEN', stream) - size
    if over > 0 then
      local oldest = call('XRANGE', stream, '-', '+', 'COUNT', over)
      dropped = string.match(oldest[#oldest][1], '^%d+')
      call('XTRIM', stream, 'MAXLEN', '=', size)
    end
    call('HSET', meta, 'g', dropped)
  end
  call('PEXPIRE', stream, ttl)
  local position = offset .. ' ' .. epoch
  record = record .. field_of('\122', position) -- field 15
  if before and before[1] == string.format('%.0f-0', number - 1) then
    record = record .. field_of('\114', before[2][2]) -- field 14: the record of the previous publication
  end
  return position, record
end
