#!lua
-- end_rotation: forget the cohort that was put aside, and say that the next day is the earliest.
-- KEYS[1]    hash  rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[2..]  any   others    as many earliest as ARGV[3] says, then the sets that were put aside
-- ARGV[1]    int   day       0..999999
-- ARGV[2]    text  id        of the rotation
-- ARGV[3]    int   earliest  1..1000, how many there are
-- Returns  1 when it was ended now, 0 when this rotation is not under way
-- Cost     O(periods)        Repeat: safe
local rotation, day, id, last_earliest = KEYS[1], ARGV[1], ARGV[2], 1 + ARGV[3]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return 0
end
for place = last_earliest + 1, #KEYS do
  redis.call('UNLINK', KEYS[place])
end
for place = 2, last_earliest do
  if tonumber(redis.call('GET', KEYS[place]) or '1e9') <= tonumber(day) then
    redis.call('SET', KEYS[place], day + 1)
  end
end
redis.call('HDEL', rotation, 'unix_date', 'id')
return 1
