#!lua
-- begin_rotation: put the earliest cohort aside, for every period, so that it can be counted and stored.
-- KEYS[1]    hash  rotation  id and unix_date of the rotation under way; rotated_to
-- KEYS[2..]  any   others    as many earliest as ARGV[3] says, then pairs: a set of the day, and where it goes
-- ARGV[1]    int   day       0..999999
-- ARGV[2]    text  id        for a new rotation
-- ARGV[3]    int   earliest  1..1000, how many there are
-- Returns  the id of the rotation that is now under way for the day, an older one if it was begun before; nil if the
--          day is not the earliest, or another day is under way
-- Cost     O(periods)        Repeat: safe
local rotation, day, id, last_earliest = KEYS[1], ARGV[1], ARGV[2], 1 + ARGV[3]

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id', 'rotated_to')
if under_way[1] then
  return under_way[1] == day and under_way[2] or nil
end
local first = 1e9
for place = 2, last_earliest do
  first = math.min(first, tonumber(redis.call('GET', KEYS[place]) or '1e9'))
end
if first ~= tonumber(day) then
  return nil
end
local rotated_to = math.max(day + 1, tonumber(under_way[3] or '0'))
redis.call('HSET', rotation, 'unix_date', day, 'id', id, 'rotated_to', rotated_to)
for place = last_earliest + 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[place]) == 1 then
    redis.call('RENAME', KEYS[place], KEYS[place + 1])
  end
end
return id
