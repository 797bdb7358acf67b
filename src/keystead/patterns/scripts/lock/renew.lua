#!lua
-- renew: give a leased lock its whole time again, if it is still this holder's.
-- KEYS[1]  string  lock       JSON of the holder
-- ARGV[1]  text    me         how the holder's JSON begins
-- ARGV[2]  int     lease_ms   1..864000000
-- Returns  1 renewed, 0 not this holder's any more
-- Cost     O(1)               Repeat: safe
local lock, me, lease_ms = KEYS[1], ARGV[1], ARGV[2]

local found = redis.call('GET', lock)
if not found or string.sub(found, 1, #me) ~= me then
  return 0
end
return redis.call('PEXPIRE', lock, lease_ms)
