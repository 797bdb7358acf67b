#!lua
-- open_day: list time zones whose reminders of a day get their time; the day may become the earliest.
-- KEYS[1]    string  earliest
-- KEYS[2]    zset    zones
-- ARGV[1]    int     day        0..999999
-- ARGV[2]    int     may_lower  0..1, with 0 only a day that is not behind the earliest is opened
-- ARGV[3..]  text    names      of time zones
-- Returns  1 when the day is open, 0 when it is behind the earliest
-- Cost     O(names)             Repeat: safe
local earliest, zones, day, may_lower = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2] == '1'

local first = tonumber(redis.call('GET', earliest) or '1e9')
if day < first and first < 1e9 and not may_lower then return 0 end
local place = redis.call('ZCARD', zones)
if day < first then redis.call('SET', earliest, day) end
for argument = 3, #ARGV do
  if redis.call('ZADD', zones, 'NX', place, ARGV[argument]) == 1 then place = place + 1 end
end
return 1
