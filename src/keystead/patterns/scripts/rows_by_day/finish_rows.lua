#!lua
-- finish_rows: forget rows of the day that is rotated, which are stored by now.
-- KEYS[1]    hash  rotation  id and unix_date of the rotation under way
-- KEYS[2]    set   aside     rows that are still to be rotated
-- KEYS[3..]  hash  counts    of each row
-- ARGV[1]    int   day       0..999999
-- ARGV[2]    text  id        of the rotation
-- ARGV[3..]  text  rows
-- Returns  how many of them were still there; 0 when this rotation is not under way
-- Cost     O(rows)           Repeat: safe
local rotation, aside, day, id, gone = KEYS[1], KEYS[2], ARGV[1], ARGV[2], 0

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return 0
end
for place = 3, #KEYS do
  gone = gone + redis.call('SREM', aside, ARGV[place])
  redis.call('UNLINK', KEYS[place])
end
return gone
