#!lua
-- bury: move members from purgatory to the dead letters.
-- KEYS[1]    zset   purgatory
-- KEYS[2]    list   dead      newest right
-- ARGV[1..]  bytes  pairs     a member, then its facts (error and time, JSON without the opening brace); and so on
-- Returns  how many were moved; the others were not in purgatory any more
-- Cost     O(members * log(n))
-- Repeat: safe; what has been moved is not in purgatory
local purgatory, dead, moved = KEYS[1], KEYS[2], 0

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
for place = 1, #ARGV, 2 do
  if redis.call('ZREM', purgatory, ARGV[place]) == 1 then
    redis.call('RPUSH', dead, '{"attempts":0,' .. ARGV[place + 1] .. '\n' .. ARGV[place])
    moved = moved + 1
  end
end
return moved
