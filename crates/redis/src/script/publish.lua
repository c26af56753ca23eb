-- Publishes atomically: idempotency, version, position, storage and PUBLISH together.
-- KEYS: 1 stream, 2 meta, 3 feed, 4 result (only with an idempotency key)
-- ARGV: 1 record, 2 new epoch in case there is none, 3 size of the history (0 = none), 4 ttl of the stream in ms,
--       5 ttl of meta in ms (0 = for ever), 6 version (0 = none), 7 epoch of the version, 8 ttl of the result in ms,
--       9 whether it is a delta (1 or 0), 10 PUBLISH, in a Cluster SPUBLISH; the last two as in replication_history.lua
-- Reply: "offset epoch" of the publication, "" without a position in a stream; {"offset epoch"} of the first one with this
--        key, {"offset epoch", "version"} of the top if the version is not newer.
-- Stands behind store.lua. Each redis.call costs about a microsecond. A usual publication has six; one of them reads three fields for the epoch.
local stream, meta, result = KEYS[1], KEYS[2], KEYS[4]
local record, version = ARGV[1], ARGV[6]

if result then
  local first = call('GET', result)
  if first then
    call('SET', result, first, 'KEEPTTL') -- WAIT covers only writes of this connection, so a repeated publication writes as well
    return {first}
  end
end
local position = ''
if ARGV[3] ~= '0' then
  local epoch, dropped = epoch_of(stream, meta, ARGV[2])
  if version ~= '0' then
    local held = call('HMGET', meta, 'v', 'w', 'o')
    local known = held[1]
    if known and (ARGV[7] == '' or ARGV[7] == held[2]) then
      -- Decimal texts without leading zeros; as numbers they would lose digits.
      local newer = #version > #known or (#version == #known and version > known)
      if not newer then
        live_on(meta, ARGV[5])
        call('HSET', meta, 'e', epoch) -- for WAIT, as above
        return {(held[3] or '0') .. ' ' .. epoch, 'version'}
      end
    end
  end
  local stored, message =
    store(stream, meta, epoch, dropped, ARGV[2], record, ARGV[3], ARGV[4], ARGV[5], ARGV[9], 'd')
  if not stored then return message end
  if version ~= '0' then call('HSET', meta, 'v', version, 'w', ARGV[7]) end
  position, record = stored, message
end
-- Commands that can be refused come before the PUBLISH, which cannot be undone.
if result then call('SET', result, position, 'PX', ARGV[8]) end
call(ARGV[10], KEYS[3], record)
return position
