#!lua
-- drop: forget the counts of months that are over.
-- KEYS[1]    string  earliest  first month that may still be here
-- KEYS[2..]  string  months    from the earliest on
-- ARGV[1]    int     first     0..99999, the month of KEYS[2]
-- ARGV[2]    int     kept      0..99999, the first month that stays
-- Returns  1 when they are gone, 0 when the earliest month is another by now
-- Cost     O(months)           Repeat: safe
local earliest, first, kept = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', earliest) ~= first then
  return 0
end
for place = 2, #KEYS do
  redis.call('UNLINK', KEYS[place])
end
redis.call('SET', earliest, kept)
return 1
