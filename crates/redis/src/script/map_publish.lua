-- Sets a key of a map atomically: checks, position, entry, stream and PUBLISH together. Stands behind map.lua.
-- ARGV: 10 key, 11 tags and 12 the other fields of the publication, 13 fields of the record behind it, 14 version (0 = none),
--       15 its epoch, 16 key mode ("", "new", "refresh" or "exists"), 17 expected offset ("" = none), 18 expected epoch,
--       19 most entries, 20 whether it is a delta (1 or 0), 21 ttl of the result in ms
-- Reply: the check that failed or "", "offset epoch"; for a failed expectation the entry of now.
local key, version, version_epoch, mode = ARGV[10], ARGV[14], ARGV[15], ARGV[16]
local first = repeated()
if first then return first end
open()
local old = call('HGET', entries, key)
local kept_version, kept_epoch, old_message = '0', '', nil
if old then
  local _
  _, kept_version, kept_epoch, _, old_message = parts_of(old)
end
if version ~= '0' and (version_epoch == '' or version_epoch == kept_epoch) then
  -- Decimal texts without leading zeros; as numbers they would lose digits.
  local newer = #version > #kept_version or (#version == #kept_version and version > kept_version)
  if not newer then return suppressed('version') end
end
if old and (mode == 'new' or mode == 'refresh') then
  if mode == 'refresh' then
    set_deadline(key)
    save()
    live_on_all()
  end
  return suppressed('key_exists')
end
if not old and mode == 'exists' then return suppressed('key_not_found') end
local other = mismatch(old, ARGV[17], ARGV[18])
if other then return other end

if version ~= '0' then kept_version, kept_epoch = version, version_epoch end
local message = ARGV[11] .. ARGV[12]
local offset = has_stream and text_of(top + 1) or '0'
local entry = string.format('%s %s %d %d ', offset, kept_version, #kept_epoch, #ARGV[11]) .. kept_epoch .. message
local grown = bytes_of(key, entry) - (old and bytes_of(key, old) or 0)
if not old and count >= tonumber(ARGV[19]) then return suppressed('entries') end
if grown > 0 and bytes + grown > bytes_max then return suppressed('bytes') end

local record = append(message, ARGV[13])
set_deadline(key)
call('HSET', entries, key, entry)
if not old then count = count + 1 end
bytes = bytes + grown
save()
if old_message and ARGV[20] == '1' then
  record = record .. field_of('\114', '\1' .. field_of('\10', old_message)) -- field 14
end
return publish(record, ARGV[21])
