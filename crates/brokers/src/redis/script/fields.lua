-- Whether a Redis has ends of hash fields, and whether this connection may use what the scripts of presence then use.
-- ARGV: 1 a key such as those that will have them
-- Reply: 1; 0 if it has none; -1 if it has and this connection may not
local key, may = ARGV[1], redis.acl_check_cmd -- of Redis 7.0; it fails for a command that there is not
local function can()
  return may('HPEXPIREAT', key, 1, 'FIELDS', 1, 'f') and may('HPEXPIRETIME', key, 'FIELDS', 1, 'f')
    and may('HVALS', key) and may('HKEYS', key) and may('HEXISTS', key, 'f') and may('EXISTS', key)
end
local is_known, is_allowed = pcall(can)
if not is_known then return 0 end
return is_allowed and 1 or -1
