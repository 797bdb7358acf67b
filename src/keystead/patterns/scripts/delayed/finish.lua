#!lua
-- finish: remove exactly these members from a worker's purgatory.
-- KEYS[1]    zset   purgatory
-- ARGV[1..]  bytes  members
-- Returns  places (from 1) of members that were not there: another worker has adopted them
-- Cost     O(members * log(n))
-- Repeat: not safe; a repeat finds none of them and calls them lost
local purgatory, missing = KEYS[1], {}

for place = 1, #ARGV do
  if redis.call('ZREM', purgatory, ARGV[place]) == 0 then missing[#missing + 1] = place end
end
return missing
