-- What the scripts of maps share; stands behind store.lua.
-- KEYS: 1 changes (stream), 2 meta (hash), 3 feed, 4 entries (hash), 5 deadlines (sorted set of keys by the ms at which they end),
--       with an idempotency key: 6 clearing, 7 result
-- ARGV: 1 new epoch in case one is needed, 2 now in ms, 3 most changes in the stream (0 = ephemeral: there is none), 4 ttl of the
--       stream in ms, 5 ttl of meta in ms (0 = for ever), 6 ttl of an entry in ms (0 = none), 7 ttl of the keys with entries in ms,
--       8 most bytes, 9 PUBLISH; then those of the script; the last two as in replication_history.lua
-- An entry is a text "OFFSET VERSION EPOCH_LENGTH TAGS_LENGTH ", the epoch of its version, and the Protobuf message of its
-- publication, which begins with its tags. A change in the stream has the field `d`, its record, and `c`, the bytes of all changes
-- before it. Fields of meta beside those of epoch_of and `o`, the top: n number of entries, y their bytes, c bytes of all changes
-- since the beginning, z those before the oldest one that was found last, t the last deadline.
local changes, meta, feed, entries, deadlines = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, size, ttl, bytes_max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[8])
local has_stream = size > 0
local epoch, top, count, bytes, written, forgotten, latest = '', 0, 0, 0, 0, 0, 0
local ENTRY_BYTES, CHANGE_BYTES = 200, 64 -- of memory around an entry, and around a change

local function text_of(number) return string.format('%.0f', number) end
local function position_of(offset) return has_stream and text_of(offset) .. ' ' .. epoch or '' end

-- Reads the state of the map. Must come before all other functions.
local function open()
  local stored = call('HLEN', entries)
  local held = call('HMGET', meta, 'e', 'n', 'o', 'y', 'c', 'z', 't')
  if stored ~= tonumber(held[2] or '0') then
    -- Redis has evicted a part, or it has expired in a time without nodes: the map begins again.
    call('DEL', changes, meta, entries, deadlines)
    held, stored = {}, 0
  elseif has_stream and held[2] and not held[1] then
    call('HSET', meta, 'e', ARGV[1]) -- it was ephemeral, and keeps its entries
  elseif held[1] and not has_stream then
    call('HDEL', meta, 'e')
    call('DEL', changes)
  end
  if has_stream then epoch = epoch_of(changes, meta, ARGV[1]) end
  count, top, bytes = stored, tonumber(held[3] or '0'), tonumber(held[4] or '0')
  written, forgotten, latest = tonumber(held[5] or '0'), tonumber(held[6] or '0'), tonumber(held[7] or '0')
end

-- Starts the lifetimes again.
local function live_on_all()
  live_on(meta, ARGV[5])
  if has_stream then call('PEXPIRE', changes, ARGV[4]) end
  live_on(entries, ARGV[7])
  live_on(deadlines, ARGV[7])
end

-- Sets when a key ends. Keys that are set in one millisecond, or by nodes with clocks some ms apart, end in the order of their changes.
local function set_deadline(key)
  if ttl == 0 then return call('ZREM', deadlines, key) end
  local at = now + ttl
  if latest >= at and latest < at + 1000 then at = latest + 0.001 end
  latest = at
  call('ZADD', deadlines, string.format('%.3f', at), key)
end

-- The bytes of all changes before the one at `offset`; nil if it is not there.
local function written_before(offset)
  local id = text_of(offset) .. '-0'
  local found = call('XRANGE', changes, id, id)[1]
  return found and tonumber(found[2][4] or '')
end

-- Trims the stream so that entries and changes have at most `bytes_max` together, and looks for the oldest change.
local function give_way()
  call('XTRIM', changes, 'MAXLEN', '=', ARGV[3])
  local low, high = math.max(top - size + 1, 1), top + 1 -- the oldest change that fits is between them
  while low < high do
    local middle = math.floor((low + high) / 2)
    local before = written_before(middle)
    if before and bytes + written - before <= bytes_max then high = middle else low = middle + 1 end
  end
  call('XTRIM', changes, 'MINID', '=', text_of(low) .. '-0')
  forgotten = written_before(low) or written
end

-- Stores the state of the map behind a change.
local function save()
  if has_stream and bytes + written - forgotten > bytes_max then give_way() end
  call('HSET', meta, 'n', count, 'o', text_of(top), 'y', text_of(bytes), 'c', text_of(written), 'z', text_of(forgotten),
    't', string.format('%.3f', latest))
end

-- Adds a change to the stream. Returns the record for PUBLISH. `fields` stand behind the publication in the record.
local function append(message, fields)
  local record = '\1' .. field_of('\10', message) .. fields
  if not has_stream then return record end
  local id = text_of(top + 1) .. '-0'
  local added = redis.pcall('XADD', changes, 'MAXLEN', '~', ARGV[3], id, 'd', record, 'c', text_of(written))
  if type(added) == 'table' then
    if string.find(added.err, 'equal or smaller', 1, true) or string.find(added.err, 'exhausted', 1, true) then
      -- An entry of another program is at this id or above: the stream starts again with a new epoch.
      epoch = ARGV[1]
      call('DEL', changes)
      call('HSET', meta, 'e', epoch)
    end
    call('XADD', changes, id, 'd', record, 'c', text_of(written))
  end
  top, written = top + 1, written + #record + CHANGE_BYTES
  return record .. field_of('\122', position_of(top)) -- field 15
end

-- The parts of an entry: offset, version, its epoch, tags, message.
local function parts_of(entry)
  local offset, version, epoch_length, tags_length, at = string.match(entry, '^(%d+) (%d+) (%d+) (%d+) ()')
  if not at then return '0', '0', '', '', '' end -- of another program
  local from = at + epoch_length
  return offset, version, string.sub(entry, at, from - 1), string.sub(entry, from, from + tags_length - 1), string.sub(entry, from)
end

local function bytes_of(key, entry) return ENTRY_BYTES + #key + #entry end

-- Removes an entry. Without `tags` the removal has those of the entry. Returns the record for PUBLISH.
-- The first write needs no memory, so a Redis without free memory does not refuse the others either.
local function remove(key, entry, tags, time)
  call('ZREM', deadlines, key)
  count, bytes = count - 1, bytes - bytes_of(key, entry)
  if tags == '' then tags = select(4, parts_of(entry)) end
  local message = tags .. field_of('\90', key) .. '\96\1' -- fields 11 and 12
  if time > 0 then message = message .. '\72' .. varint(time) end -- field 9
  local record = append(message, '')
  call('HDEL', entries, key)
  save()
  return record
end

-- Removes at most `most` entries whose time is over. Returns how many.
local function expire(most)
  if ttl == 0 then return 0 end
  local due = call('ZRANGEBYSCORE', deadlines, '-inf', ARGV[2], 'LIMIT', 0, most)
  for _, key in ipairs(due) do
    local entry = call('HGET', entries, key)
    if entry then
      call(ARGV[9], feed, remove(key, entry, '', now))
    else
      call('ZREM', deadlines, key)
    end
  end
  if due[1] and has_stream then call('PEXPIRE', changes, ARGV[4]) end
  return #due
end

-- The reply to a repeated idempotency key, if the map was not cleared in between.
local function repeated()
  local first = KEYS[7] and call('GET', KEYS[7])
  if not first then return end
  local clearing, position = string.match(first, '^(%a*) (.*)$')
  if clearing ~= (call('GET', KEYS[6]) or clearing) then return end
  call('SET', KEYS[7], first, 'KEEPTTL') -- for WAIT, as in publish.lua
  return { 'idempotency', position }
end

-- The reply to a change that a check suppresses.
local function suppressed(reason, offset, entry)
  if call('EXISTS', meta) == 1 then
    call('HSET', meta, 'n', count) -- for WAIT, as in publish.lua
    live_on(meta, ARGV[5])
  end
  return { reason, position_of(offset or top), entry or '' }
end

-- The reply if an entry is not at the expected position ("" = any).
local function mismatch(entry, expected, expected_epoch)
  if expected == '' then return end
  local offset = entry and string.match(entry, '^%d+') or '0'
  if entry and offset == expected and epoch == expected_epoch then return end
  return suppressed('position_mismatch', tonumber(offset), entry)
end

-- Publishes a change that was stored. Returns the reply.
local function publish(record, result_ttl)
  live_on_all()
  local position = position_of(top)
  if KEYS[7] then call('SET', KEYS[7], (call('GET', KEYS[6]) or '') .. ' ' .. position, 'PX', result_ttl) end
  call(ARGV[9], feed, record)
  return { '', position }
end

