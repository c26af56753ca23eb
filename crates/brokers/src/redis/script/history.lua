-- Reads stored publications and the top of the stream, of one moment. Begins a stream where there is none.
-- KEYS: 1 stream, 2 meta
-- ARGV: 1 epoch if there is none yet, 2 ttl of meta in ms (0 = for ever), 3 command (XRANGE, XREVRANGE or nothing),
--       4 and 5 its bounds, 6 most publications ("" = all), 7 and 8 run and turn of the reign
-- Reply: "offset epoch" of the top; ids with their fields; "offset epoch" up to where it is the same as the one before, or "".
local stream, meta = KEYS[1], KEYS[2]
local epoch, offset, before, inherited = reigned(stream, meta, ARGV[1], ARGV[7] or '', ARGV[8] or '0')
if ARGV[2] ~= '0' then redis.call('PEXPIRE', meta, ARGV[2]) else redis.call('PERSIST', meta) end
local found = {}
if ARGV[3] ~= '' then
  if ARGV[6] == '' then
    found = redis.call(ARGV[3], stream, ARGV[4], ARGV[5])
  else
    found = redis.call(ARGV[3], stream, ARGV[4], ARGV[5], 'COUNT', ARGV[6])
  end
end
return { offset .. ' ' .. epoch, found, before and inherited .. ' ' .. before or '' }
