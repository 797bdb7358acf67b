#!lua
-- end_late: add late views that were put aside and are stored to the totals of all time, and forget them.
-- KEYS[1]  hash  rotation  late_id: the views that are put aside
-- KEYS[2]  hash  aside     day:value by views
-- KEYS[3]  hash  views     of rotated days, by value
-- ARGV[1]  text  id
-- Returns  1 when they were added now, 0 when this id is not under way
-- Cost     O(fields)       Repeat: safe
local rotation, aside, views, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
-- include _whole

if redis.call('HGET', rotation, 'late_id') ~= id then
  return 0
end
local flat, values = redis.call('HGETALL', aside), {}
for field = 1, #flat, 2 do
  values[field] = string.match(flat[field], '^%d+:(.+)$')
  check_whole(flat[field + 1], redis.call('HGET', views, values[field]) or '0')
end
for field = 1, #flat, 2 do
  redis.call('HINCRBY', views, values[field], flat[field + 1])
end
redis.call('UNLINK', aside)
redis.call('HDEL', rotation, 'late_id')
return 1
