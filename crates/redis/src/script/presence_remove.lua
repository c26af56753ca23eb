-- Removes a member, if it is there.
-- ARGV: 1 client
drop(ARGV[1])
return 0
