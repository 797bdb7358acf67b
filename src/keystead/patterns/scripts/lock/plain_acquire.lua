#!lua
-- plain_acquire: take a plain lock and say when it ends by the server's clock, which no later holder's can equal.
-- KEYS[1]  string  lock       the value 1
-- ARGV[1]  int     lease_ms   1..864000000
-- Returns  the instant of its end in unix milliseconds, or 0 when it is held
-- Cost     O(1)               Repeat: not safe; a repeat is refused by the first try
local lock, lease_ms = KEYS[1], ARGV[1]

if not redis.call('SET', lock, '1', 'NX', 'PX', lease_ms) then
  return 0
end
return redis.call('PEXPIRETIME', lock)
