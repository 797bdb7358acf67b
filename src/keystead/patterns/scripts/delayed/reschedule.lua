#!lua
-- reschedule: return members from purgatory to the set of waiting ones, each with a new time.
-- KEYS[1]    zset   purgatory
-- KEYS[2]    zset   due
-- ARGV[1..]  bytes  pairs      the new time as text, then the member; and so on
-- Returns  places (from 1) of members that were not in purgatory; those are left as they are
-- Cost     O(members * log(n))
-- Repeat: not safe; a repeat finds none of them and calls them lost
local purgatory, due, missing = KEYS[1], KEYS[2], {}

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
for place = 1, #ARGV, 2 do
  if redis.call('ZREM', purgatory, ARGV[place + 1]) == 1 then
    redis.call('ZADD', due, ARGV[place], ARGV[place + 1])
  else
    missing[#missing + 1] = (place + 1) / 2
  end
end
return missing
