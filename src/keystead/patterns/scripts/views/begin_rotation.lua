#!lua
-- begin_rotation: put the earliest day aside, so that it can be read and stored.
-- KEYS[1]    hash    rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[2]    hash    views     of the day, by value
-- KEYS[3]    hash    aside     where they go
-- KEYS[4..]  string  earliest  first day that may still be here
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    text    id        for a new rotation
-- Returns  the id of the rotation that is now under way for the day, an older one if it was begun before; nil if the
--          day is not the earliest, or another day is under way
-- Cost     O(1)                Repeat: safe
local rotation, views, aside, day, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
-- include _first

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id', 'rotated_to')
if under_way[1] then
  return under_way[1] == day and under_way[2] or nil
end
if first_day(4) ~= tonumber(day) then
  return nil
end
-- From here on nobody adds to the sets of members either, so that they may keep their names.
local rotated_to = math.max(day + 1, tonumber(under_way[3] or '0'))
redis.call('HSET', rotation, 'unix_date', day, 'id', id, 'rotated_to', rotated_to)
if redis.call('EXISTS', views) == 1 then
  redis.call('RENAME', views, aside)
end
return id
