-- Removes a member, if it is there.
-- ARGV: 1 client, 2 now in ms
drop(ARGV[1])
if sees_fields then drop_field(ARGV[1], tonumber(ARGV[2])) end
return 0
