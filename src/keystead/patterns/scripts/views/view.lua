#!lua
-- view: count a view of a value by a member, or apart when the day was rotated.
-- KEYS[1]    hash    rotation     rotated_to: the first day that was not rotated yet
-- KEYS[2]    hash    late         day:value by how many views came too late
-- KEYS[3]    set     values       every value that was seen
-- KEYS[4]    hash    views        of the day, by value
-- KEYS[5]    set     members      who viewed the value that day
-- KEYS[6]    set     others       who viewed what is counted as other that day
-- KEYS[7..]  string  earliest     first day that may still be here; all are kept the same
-- ARGV[1]    int     day          0..999999
-- ARGV[2]    text    value
-- ARGV[3]    text    member
-- ARGV[4]    int     most_values  1..10000
-- ARGV[5]    text    other        what more values are counted as
-- Returns  {1 when the member is new for the value and day, 0 when not, -1 when it is late; 1 when counted as other}
-- Cost     O(1)                   Repeat: not safe; a repeat counts again
local rotation, late, values, views, members, others = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local day, value, member, most_values, other = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
-- include _first

local first, gone = first_day(7), day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1')
local counted, head = views, ''
if gone then
  counted, head = late, day .. ':'
end
local overflow = value ~= other and redis.call('HEXISTS', counted, head .. value) == 0
  and redis.call('HLEN', counted) - redis.call('HEXISTS', counted, head .. other) >= most_values
if overflow then
  value, members = other, others
end
if gone then
  redis.call('HINCRBY', late, head .. value, 1)
  return {-1, overflow and 1 or 0}
end
redis.call('SCARD', members)  -- a wrong type must show before anything is counted
for place = 7, #KEYS do
  if day < tonumber(redis.call('GET', KEYS[place]) or '1e9') then
    redis.call('SET', KEYS[place], math.min(day, first))
  end
end
redis.call('SADD', values, value)
redis.call('HINCRBY', views, value, 1)
return {redis.call('SADD', members, member), overflow and 1 or 0}
