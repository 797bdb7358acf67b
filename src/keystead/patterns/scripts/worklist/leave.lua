#!lua
-- leave: let a worker's sign of life end shortly; it stays listed, so that others adopt what it may leave behind.
-- KEYS[1]  any     purgatory  list or sorted set
-- KEYS[2]  string  alive
-- ARGV[1]  int     linger_ms  1..60000; time in which a wait that was broken off can still deliver something
-- Returns  1 when it leaves something behind as far as is known now, else 0
-- Cost     O(1)               Repeat: safe
local purgatory, alive, linger_ms = KEYS[1], KEYS[2], ARGV[1]

redis.call('PEXPIRE', alive, linger_ms, 'LT')
return redis.call('EXISTS', purgatory)
