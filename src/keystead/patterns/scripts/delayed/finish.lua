#!lua
-- finish: remove exactly these members from a worker's purgatory.
-- KEYS[1]    zset   purgatory
-- KEYS[2]    hash   poison     members that a worker died with; finished ones are struck out
-- ARGV[1..]  bytes  members
-- Returns  places (from 1) of members that were not there: another worker has adopted them
-- Cost     O(members * log(n))
-- Repeat: not safe; a repeat finds none of them and calls them lost
-- include _acquit
local purgatory, poison, missing = KEYS[1], KEYS[2], {}

local suspects = redis.call('HLEN', poison) > 0
for place = 1, #ARGV do
  if redis.call('ZREM', purgatory, ARGV[place]) == 0 then
    missing[#missing + 1] = place
  elseif suspects then
    acquit(poison, ARGV[place])
  end
end
return missing
