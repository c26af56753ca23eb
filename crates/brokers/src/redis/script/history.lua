-- Reads stored publications and the top of the stream, of one moment. Begins a stream where there is none.
-- KEYS: 1 stream, 2 meta
-- ARGV: 1 epoch if there is none yet, 2 ttl of meta in ms (0 = for ever), 3 command (XRANGE, XREVRANGE or nothing),
--       4 the offset after which, with XREVRANGE before which ("" = none), 5 most publications ("" = all),
--       6 publications kept: the stream may hold some more, which are older; last the reign
-- Reply: "offset epoch" of the top; ids with their fields; "offset epoch" up to where it is the same as the one before, or "".
local stream, meta = KEYS[1], KEYS[2]
local epoch = reigned(stream, meta, ARGV[1])
local held = redis.call('HMGET', meta, 'o', 'p', 'b')
local inherited = held[2] and held[3] .. ' ' .. held[2] or ''
if ARGV[2] ~= '0' then redis.call('PEXPIRE', meta, ARGV[2]) else redis.call('PERSIST', meta) end
local top = held[1] or '0'
local found = {}
if ARGV[3] ~= '' then
  local since, dropped = ARGV[4], math.max(0, top - ARGV[6])
  local behind = string.format('(%.0f-0', dropped)
  local from, to = since ~= '' and '(' .. since .. '-0', '+'
  if ARGV[3] == 'XREVRANGE' then
    from, to = from or '+', behind
  elseif not from or tonumber(since) < dropped then
    from = behind
  end
  if ARGV[5] == '' then
    found = redis.call(ARGV[3], stream, from, to)
  else
    found = redis.call(ARGV[3], stream, from, to, 'COUNT', ARGV[5])
  end
end
return { top .. ' ' .. epoch, found, inherited }
