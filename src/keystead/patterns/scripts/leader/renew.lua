#!lua
-- renew: give the leader its whole time again, if it still is the leader.
-- KEYS[1]  string  leader     <instance>:<epoch>
-- ARGV[1]  text    value      the whole value, as this leader knows it
-- ARGV[2]  int     lease_ms   1..864000000
-- Returns  1 renewed, 0 not the leader any more
-- Cost     O(1)               Repeat: safe
local leader, value, lease_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', leader) ~= value then
  return 0
end
return redis.call('PEXPIRE', leader, lease_ms)
