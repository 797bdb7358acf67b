#!lua
-- begin_rotation: put the earliest day aside with the members of each value, so that it can be read and stored.
-- KEYS[1]    hash    rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[2]    hash    views     of the day, by value
-- KEYS[3]    hash    aside     where they go
-- KEYS[4..]  string  earliest  first day that may still be here
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    text    id        for a new rotation
-- ARGV[3]    text    head      of the name of a set of members, before the value
-- ARGV[4]    text    middle    between value and day
-- ARGV[5]    text    tail      after the day
-- ARGV[6]    text    put       after the day when it was put aside
-- DERIVES  set     members     of each value of the day, and where they go
-- Returns  the id of the rotation that is now under way for the day, an older one if it was begun before; nil if the
--          day is not the earliest, or another day is under way
-- Cost     O(values)           Repeat: safe
local rotation, views, aside, day, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local head, middle, tail, put = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- include _first

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id', 'rotated_to')
if under_way[1] then
  return under_way[1] == day and under_way[2] or nil
end
if first_day(4) ~= tonumber(day) then
  return nil
end
local values = redis.call('HKEYS', views)
local rotated_to = math.max(day + 1, tonumber(under_way[3] or '0'))
redis.call('HSET', rotation, 'unix_date', day, 'id', id, 'rotated_to', rotated_to)
for _, value in ipairs(values) do
  local name = head .. value .. middle .. day
  if redis.call('EXISTS', name .. tail) == 1 then
    redis.call('RENAME', name .. tail, name .. put)
  end
end
if values[1] then
  redis.call('RENAME', views, aside)
end
return id
