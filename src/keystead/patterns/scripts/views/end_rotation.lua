#!lua
-- end_rotation: add the day that was put aside to the totals of all time, forget it, and make the next one the earliest.
-- KEYS[1]    hash    rotation    id and unix_date of the rotation under way; rotated_to
-- KEYS[2]    hash    aside       views of the day, by value
-- KEYS[3]    hash    views       of rotated days, by value
-- KEYS[4..]  any     others      users of rotated days if ARGV[3] is 1, then every earliest
-- ARGV[1]    int     day         0..999999
-- ARGV[2]    text    id          of the rotation
-- ARGV[3]    int     with_users  0..1
-- ARGV[4]    text    head        of the name of a set of members, before the value
-- ARGV[5]    text    tail        after the value
-- DERIVES  set     members       of each value of the day
-- Returns  1 when it was ended now, 0 when this rotation is not under way
-- Cost     O(values)             Repeat: safe
local rotation, aside, views, day, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local with_users, head, tail = tonumber(ARGV[3]), ARGV[4], ARGV[5]
-- include _totals

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return 0
end
local flat, values, views_of, users_of, sets = redis.call('HGETALL', aside), {}, {}, {}, {}
for field = 1, #flat, 2 do
  local place = (field + 1) / 2
  values[place], views_of[place], sets[place] = flat[field], whole(flat[field + 1]), head .. flat[field] .. tail
  users_of[place] = redis.call('SCARD', sets[place])
end
local views_now = raised(views, values, views_of)
local users_now = with_users == 1 and raised(KEYS[4], values, users_of) or {}
write(views, views_now)
write(KEYS[4], users_now)
for first = 1, #sets, CHUNK do
  redis.call('UNLINK', unpack(sets, first, math.min(first + CHUNK - 1, #sets)))
end
redis.call('UNLINK', aside)
for place = 4 + with_users, #KEYS do
  redis.call('SET', KEYS[place], day + 1)
end
redis.call('HDEL', rotation, 'unix_date', 'id')
return 1
