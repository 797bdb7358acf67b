#!lua
-- empty_aside: remove some members of a set that was put aside, once it is stored.
-- KEYS[1]  hash  rotation  id and unix_date of the rotation under way
-- KEYS[2]  set   aside
-- ARGV[1]  int   day       0..999999
-- ARGV[2]  text  id        of the rotation
-- ARGV[3]  text  cursor    0 to begin with
-- ARGV[4]  int   most      1..1000, about how many
-- Returns  the next cursor, 0 when none is left or this rotation is not under way
-- Cost     O(most)         Repeat: safe
local rotation, aside, day, id, cursor, most = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return '0'
end
local found = redis.call('SSCAN', aside, cursor, 'COUNT', most)
for first = 1, #found[2], 1000 do
  redis.call('SREM', aside, unpack(found[2], first, math.min(first + 999, #found[2])))
end
return found[1]
