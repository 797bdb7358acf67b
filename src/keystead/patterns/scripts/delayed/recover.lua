#!lua
-- recover: return what a worker's purgatory holds to the set of waiting members; an earlier time there wins.
-- KEYS[1]  zset   purgatory
-- KEYS[2]  zset   due
-- ARGV[1]  float  not_before  returned members are due at this time or their own, whichever is later
-- Returns  how many were returned
-- Cost     O(members * log(n))    Repeat: safe; what was returned is no longer there
-- include _return
local purgatory, due, not_before = KEYS[1], KEYS[2], tonumber(ARGV[1])

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
return return_all(purgatory, due, not_before)
