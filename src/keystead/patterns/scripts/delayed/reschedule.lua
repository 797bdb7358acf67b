#!lua
-- reschedule: return members from purgatory to the set of waiting ones, each with a new time.
-- KEYS[1]    zset   purgatory
-- KEYS[2]    zset   due
-- KEYS[3]    hash   poison     members that a worker died with; these are struck out
-- ARGV[1..]  bytes  pairs      the new time as text, then the member; and so on
-- Returns  places (from 1) of members that were not in purgatory; those are left as they are
-- Cost     O(members * log(n))
-- Repeat: not safe; a repeat finds none of them and calls them lost
-- include _acquit
local purgatory, due, poison, missing = KEYS[1], KEYS[2], KEYS[3], {}

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
local suspects = redis.call('HLEN', poison) > 0
for place = 1, #ARGV, 2 do
  local at, member = ARGV[place], ARGV[place + 1]
  if redis.call('ZREM', purgatory, member) == 1 then
    redis.call('ZADD', due, at, member)
    if suspects then acquit(poison, member) end
  else
    missing[#missing + 1] = (place + 1) / 2
  end
end
return missing
