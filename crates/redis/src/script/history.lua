-- Reads stored publications and the top of the stream at one moment. Creates an epoch if there is none.
-- KEYS: 1 stream, 2 meta
-- ARGV: 1 new epoch in case there is none, 2 ttl of meta in ms (0 = for ever), 3 the same for a channel without
--       publications, 4 command (XRANGE, XREVRANGE or ""), 5 the offset after which, with XREVRANGE before which
--       ("" = none), 6 most publications ("" = all), 7 size of the history, because the stream may hold some older ones;
--       the last two as in replication_history.lua
-- Reply: "offset epoch" of the top; ids with their fields; "offset epoch" up to where the previous epoch is the same, or "";
--        field `g` of meta (store.lua), or "" in a stream without growing messages.
local stream, meta = KEYS[1], KEYS[2]
local epoch, kept_after = epoch_of(stream, meta, ARGV[1])
local held = redis.call('HMGET', meta, 'o', 'p', 'b')
local inherited = held[2] and held[3] .. ' ' .. held[2] or ''
local top = held[1] or '0'
local ttl = top == '0' and ARGV[3] or ARGV[2]
if ttl ~= '0' then redis.call('PEXPIRE', meta, ttl) else redis.call('PERSIST', meta) end
if kept_after and redis.call('EXISTS', stream) == 0 then kept_after = top end
local found = {}
if ARGV[4] ~= '' then
  local since, dropped = ARGV[5], tonumber(kept_after or math.max(0, top - ARGV[7]))
  local behind = string.format('(%.0f-0', dropped)
  local from, to = since ~= '' and '(' .. since .. '-0', '+'
  if ARGV[4] == 'XREVRANGE' then
    from, to = from or '+', behind
  elseif not from or tonumber(since) < dropped then
    from = behind
  end
  if ARGV[6] == '' then
    found = redis.call(ARGV[4], stream, from, to)
  else
    found = redis.call(ARGV[4], stream, from, to, 'COUNT', ARGV[6])
  end
end
return { top .. ' ' .. epoch, found, inherited, kept_after or '' }
