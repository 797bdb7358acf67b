#!lua
-- end_rotation: once every row is stored, say that the next day is the earliest.
-- KEYS[1]  string  earliest    first day that may still be here
-- KEYS[2]  hash    rotation    id and unix_date of the rotation under way; rotated_to
-- KEYS[3]  set     aside       rows that are still to be rotated
-- KEYS[4]  string  unverified  how many rows of the day are not verified
-- ARGV[1]  int     day         0..999999
-- ARGV[2]  text    id          of the rotation
-- Returns  1 when it was ended now, 0 when this rotation is not under way or rows are left
-- Cost     O(1)                Repeat: safe
local earliest, rotation, aside, unverified, day, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id or redis.call('EXISTS', aside) == 1 then
  return 0
end
redis.call('UNLINK', unverified)
redis.call('SET', earliest, day + 1)
redis.call('HDEL', rotation, 'unix_date', 'id')
return 1
