#!lua
-- end_rotation: forget the day that was put aside, and say that the next one is the earliest.
-- KEYS[1]    string  earliest  first day that may still be here
-- KEYS[2]    hash    rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[3..]  any     aside     keys of the day
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    text    id        of the rotation
-- Returns  1 when it was ended now, 0 when this rotation is not under way
-- Cost     O(aside)            Repeat: safe
local earliest, rotation, day, id = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return 0
end
for place = 3, #KEYS do
  redis.call('UNLINK', KEYS[place])
end
redis.call('SET', earliest, day + 1)
redis.call('HDEL', rotation, 'unix_date', 'id')
return 1
