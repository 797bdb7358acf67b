#!lua
-- begin_rotation: put the earliest day aside, so that it can be read and stored while counting goes on.
-- KEYS[1]    string  earliest  first day that may still be here
-- KEYS[2]    hash    rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[3..]  any     moved     pairs: a key of the day, and where it goes
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    text    id        for a new rotation
-- Returns  the id of the rotation that is now under way for the day, an older one if it was begun before; nil if the
--          day is not the earliest, or another day is under way
-- Cost     O(moved)            Repeat: safe
local earliest, rotation, day, id = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id', 'rotated_to')
if under_way[1] then
  return under_way[1] == day and under_way[2] or nil
end
if redis.call('GET', earliest) ~= day then
  return nil
end
-- A program that knows no rotation may have lowered earliest; what was rotated stays so.
local rotated_to = math.max(day + 1, tonumber(under_way[3] or '0'))
redis.call('HSET', rotation, 'unix_date', day, 'id', id, 'rotated_to', rotated_to)
for place = 3, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[place]) == 1 then
    redis.call('RENAME', KEYS[place], KEYS[place + 1])
  end
end
return id
