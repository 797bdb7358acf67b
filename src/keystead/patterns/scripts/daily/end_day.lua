#!lua
-- end_day: let the earliest day of a family without a table expire, and say that the next one is the earliest.
-- KEYS[1]    string  earliest  first day that may still be here
-- KEYS[2..]  hash    day       its counts and breakdowns
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    int     kept_ms   how long they stay
-- Returns  1 when it was ended, 0 when the day is not the earliest
-- Cost     O(breakdowns)       Repeat: safe
local earliest, day, kept_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', earliest) ~= day then
  return 0
end
for place = 2, #KEYS do
  redis.call('PEXPIRE', KEYS[place], kept_ms, 'NX')
end
redis.call('SET', earliest, day + 1)
return 1
