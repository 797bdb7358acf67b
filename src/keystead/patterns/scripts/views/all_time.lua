#!lua
-- all_time: the totals of rotated days, with the days that were not rotated yet and with what came late.
-- KEYS[1]    hash    views       of rotated days, by value
-- KEYS[2]    hash    late        day:value by views
-- KEYS[3]    hash    late_aside  the same, put aside
-- KEYS[4..]  any     others      users of rotated days if ARGV[2] is 1, then every earliest
-- ARGV[1]    int     before      0..999999, the first day that is not counted
-- ARGV[2]    int     with_users  0..1
-- ARGV[3]    text    day_head    of the name of a day's views, before the day
-- ARGV[4]    text    day_tail    after it
-- ARGV[5]    text    day_aside   after it when the day was put aside
-- ARGV[6]    text    head        of the name of a set of members, before the value
-- ARGV[7]    text    middle      between value and day
-- ARGV[8]    text    tail        after the day
-- DERIVES  hash    day           views from earliest on, and the same put aside
-- DERIVES  set     members       of each value of these days
-- Returns  {{value, views ...}, {value, members ...}}
-- Cost     O(values * days that were not rotated)   Repeat: safe
local before, with_users = tonumber(ARGV[1]), tonumber(ARGV[2])
local day_head, head, middle, tail, sums = ARGV[3], ARGV[6], ARGV[7], ARGV[8], {{}, {}}
-- include _first

local function add(which, value, amount)
  sums[which][value] = (sums[which][value] or 0) + tonumber(amount)
end

local function add_all(which, hash, take)
  local flat = redis.call('HGETALL', hash)
  for field = 1, #flat, 2 do
    take(which, flat[field], flat[field + 1])
  end
end

local function add_late(which, field, amount)
  local colon = string.find(field, ':', 1, true)
  if tonumber(string.sub(field, 1, colon - 1)) < before then
    add(which, string.sub(field, colon + 1), amount)
  end
end

local first = first_day(4 + with_users)
add_all(1, KEYS[1], add)
add_all(1, KEYS[2], add_late)
add_all(1, KEYS[3], add_late)
if with_users == 1 then
  add_all(2, KEYS[4], add)
end
for day = first, before - 1 do
  for _, ending in ipairs({ARGV[4], ARGV[5]}) do
    add_all(1, day_head .. day .. ending, function(which, value, amount)
      add(which, value, amount)
      add(2, value, redis.call('SCARD', head .. value .. middle .. day .. tail))
    end)
  end
end
local answer = {{}, {}}
for which = 1, 2 do
  for value, amount in pairs(sums[which]) do
    table.insert(answer[which], value)
    table.insert(answer[which], amount)
  end
end
return answer
