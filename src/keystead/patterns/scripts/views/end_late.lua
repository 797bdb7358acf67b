#!lua
-- end_late: add late views that were put aside and are stored to the totals of all time, and forget them.
-- KEYS[1]  hash  rotation  late_id: the views that are put aside
-- KEYS[2]  hash  aside     day:value by views
-- KEYS[3]  hash  views     of rotated days, by value
-- ARGV[1]  text  id
-- Returns  1 when they were added now, 0 when this id is not under way
-- Cost     O(fields)       Repeat: safe
local rotation, aside, views, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
-- include _totals

if redis.call('HGET', rotation, 'late_id') ~= id then
  return 0
end
local flat, values, amounts, places = redis.call('HGETALL', aside), {}, {}, {}
for field = 1, #flat, 2 do
  local value = string.match(flat[field], '^%d+:(.+)$')
  if not places[value] then
    values[#values + 1], amounts[#amounts + 1], places[value] = value, 0, #values + 1
  end
  amounts[places[value]] = amounts[places[value]] + whole(flat[field + 1])
end
write(views, raised(views, values, amounts))
redis.call('UNLINK', aside)
redis.call('HDEL', rotation, 'late_id')
return 1
