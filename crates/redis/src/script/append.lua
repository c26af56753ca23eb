-- Appends to a growing message atomically, and publishes it if it is due. The rules are those of growing.rs of `broker`.
-- KEYS: 1 stream, 2 meta, 3 feed, 4 message, 5 open messages
-- ARGV: 1 text, 2 length of the text before ("" = any), 3 field, 4 head, 5 whether the head of an older message is replaced,
--       6 whether it is final, 7 whether there is a fragment (else text that waits is published), 8 the publication without
--       its data, 9 fields of the record behind the publication, 10 the key of the message, 11 now in ms, 12 interval in ms,
--       13 most bytes of a message, 14 most open messages, 15 longest ttl of a final message in ms; 16 new epoch, 17 size,
--       18 ttl, 19 ttl of meta, 20 whether it is a delta, 21 PUBLISH, as in publish.lua. Flags are 1 or 0.
-- Reply: what came of it: "ok", "known", "final", "at", "field", "long" or "many"; the length of the text;
--        "offset epoch" of the newest publication; milliseconds until the text is due if it began to wait, else "".
-- Stands behind store.lua. A message is a hash: t text, h head, f field, p position, x final, w text waits, l last published.
local message, open = KEYS[4], KEYS[5]
local text, at, field, head = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now, interval, ttl = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[18])

-- The escapes of escape.rs of `protocol`, but for U+2028 and U+2029.
local short = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }
local function escape(byte) return short[byte] or string.format('\\u%04x', string.byte(byte)) end

local held = call('HMGET', message, 't', 'h', 'f', 'p', 'x', 'w', 'l')
local old, position, waited = held[1] or '', held[4] or '', held[6] == '1'
local is_new, is_final, length = not held[1], held[5] == '1', #old
local is_known, changes = false, waited

if ARGV[7] == '1' then
  if not is_new and held[3] ~= field then return { 'field', length, position, '' } end
  if at ~= '' then
    at = tonumber(at)
    local same = math.min(#text, length - at)
    if same < 0 or string.sub(old, at + 1, at + same) ~= string.sub(text, 1, same) then
      return { 'at', length, position, '' }
    end
    is_known = same > 0 and same == #text
    text = string.sub(text, same + 1)
  end
  if is_final and text ~= '' then return { 'final', length, position, '' } end
  if is_final then
    is_known, head = true, held[2]
  else
    local kept = not is_new and ARGV[5] == '0'
    if kept then head = held[2] end
    if length + #text + #head > tonumber(ARGV[13]) then return { 'long', length, position, '' } end
    -- Only a read, because the first write must be one that needs memory (store.lua).
    if is_new and call('ZCOUNT', open, '(' .. ARGV[11], '+inf') >= tonumber(ARGV[14]) then return { 'many', 0, '', '' } end
    changes = waited or is_new or text ~= '' or head ~= held[2] or ARGV[6] == '1'
    is_final = ARGV[6] == '1'
    old = old .. text
    length = #old
    local until_ms = is_final and math.min(ttl, tonumber(ARGV[15])) or ttl
    call('HSET', message, 't', old, 'h', head, 'f', field, 'x', is_final and '1' or '0', 'w', changes and '1' or '0')
    call('PEXPIRE', message, until_ms)
    if is_final then
      call('ZREM', open, ARGV[10])
    else
      call('ZADD', open, now + ttl, ARGV[10])
      if is_new then call('ZREMRANGEBYSCORE', open, '-inf', ARGV[11]) end
      call('PEXPIRE', open, ttl)
    end
  end
else
  head, field = held[2], held[3]
end

local outcome = is_known and 'known' or 'ok'
if not changes then return { outcome, length, position, '' } end
local passed = now - tonumber(held[7] or '0')
if ARGV[7] == '1' and not is_final and position ~= '' and passed >= 0 and passed < interval then
  return { outcome, length, position, waited and '' or string.format('%.0f', interval - passed) }
end

local stream, meta = KEYS[1], KEYS[2]
local epoch, dropped = epoch_of(stream, meta, ARGV[16])
if not dropped then
  -- The first message that grows in this stream: from here on offsets may have gaps.
  call('XTRIM', stream, 'MAXLEN', '=', ARGV[17])
  local oldest = call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  dropped = oldest and string.format('%.0f', string.match(oldest[1], '^%d+') - 1) or call('HGET', meta, 'o') or '0'
end
local data = head .. string.gsub(old, '[%z\1-\31"\\<>&]', escape) .. (field == '' and '"' or '"}')
local record = '\1' .. field_of('\10', field_of('\34', data) .. ARGV[8]) .. ARGV[9]
local replaced = string.match(position, '^%d+')
local stored, published =
  store(stream, meta, epoch, dropped, ARGV[16], record, ARGV[17], ARGV[18], ARGV[19], ARGV[20], 'm' .. ARGV[10], replaced)
if not stored then return published end
call('HSET', message, 'p', stored, 'w', '0', 'l', ARGV[11])
call(ARGV[21], KEYS[3], published)
return { outcome, length, stored, '' }
