#!lua
-- close_day: forget how far a day is, if it is the earliest; the next one is the earliest then.
-- KEYS[1]    string  earliest
-- KEYS[2..]  any     progress   what is kept of the day
-- ARGV[1]    int     day        0..999999
-- Returns  1 when it was closed, 0 when it is not the earliest
-- Cost     O(keys)              Repeat: safe; a repeat finds another day
local earliest, day = KEYS[1], ARGV[1]

if redis.call('GET', earliest) ~= day then return 0 end
for place = 2, #KEYS do redis.call('DEL', KEYS[place]) end
redis.call('SET', earliest, tonumber(day) + 1)
return 1
