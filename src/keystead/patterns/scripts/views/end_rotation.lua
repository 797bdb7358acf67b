#!lua
-- end_rotation: add the day that was put aside to the totals of all time, forget it, and make the next one the earliest.
-- KEYS[1]    hash    rotation    id and unix_date of the rotation under way; rotated_to
-- KEYS[2]    hash    aside       views of the day, by value
-- KEYS[3]    hash    views       of rotated days, by value
-- KEYS[4..]  any     others      users of rotated days if ARGV[3] is 1, then every earliest
-- ARGV[1]    int     day         0..999999
-- ARGV[2]    text    id          of the rotation
-- ARGV[3]    int     with_users  0..1
-- ARGV[4]    text    head        of the name of a set of members that was put aside, before the value
-- ARGV[5]    text    tail        after the value
-- DERIVES  set     members       of each value of the day
-- Returns  1 when it was ended now, 0 when this rotation is not under way
-- Cost     O(values)             Repeat: safe
local rotation, aside, views, day, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local with_users, head, tail = tonumber(ARGV[3]), ARGV[4], ARGV[5]
-- include _whole

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return 0
end
local flat = redis.call('HGETALL', aside)
for field = 1, #flat, 2 do
  check_whole(flat[field + 1], redis.call('HGET', views, flat[field]) or '0',
    with_users == 1 and redis.call('HGET', KEYS[4], flat[field]) or '0')
end
for field = 1, #flat, 2 do
  local value, members = flat[field], head .. flat[field] .. tail
  redis.call('HINCRBY', views, value, flat[field + 1])
  if with_users == 1 then
    redis.call('HINCRBY', KEYS[4], value, redis.call('SCARD', members))
  end
  redis.call('UNLINK', members)
end
redis.call('UNLINK', aside)
for place = 4 + with_users, #KEYS do
  redis.call('SET', KEYS[place], day + 1)
end
redis.call('HDEL', rotation, 'unix_date', 'id')
return 1
