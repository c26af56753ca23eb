-- Reads stored publications and the top of the stream, of one moment. Begins a stream where there is none.
-- KEYS: 1 stream, 2 meta
-- ARGV: 1 epoch if there is none yet, 2 ttl of meta in ms (0 = for ever), 3 command (XRANGE, XREVRANGE or nothing),
--       4 and 5 its bounds, 6 most publications ("" = all); last the reign
-- Reply: "offset epoch" of the top; ids with their fields; "offset epoch" up to where it is the same as the one before, or "".
local stream, meta = KEYS[1], KEYS[2]
local epoch = reigned(stream, meta, ARGV[1])
local held = redis.call('HMGET', meta, 'o', 'p', 'b')
local inherited = held[2] and held[3] .. ' ' .. held[2] or ''
if ARGV[2] ~= '0' then redis.call('PEXPIRE', meta, ARGV[2]) else redis.call('PERSIST', meta) end
local found = {}
if ARGV[3] ~= '' then
  if ARGV[6] == '' then
    found = redis.call(ARGV[3], stream, ARGV[4], ARGV[5])
  else
    found = redis.call(ARGV[3], stream, ARGV[4], ARGV[5], 'COUNT', ARGV[6])
  end
end
return { (held[1] or '0') .. ' ' .. epoch, found, inherited }
