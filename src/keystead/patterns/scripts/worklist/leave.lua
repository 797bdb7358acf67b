#!lua
-- leave: end a worker's heartbeat; it stays listed while its purgatory holds something, so that others adopt it.
-- KEYS[1]  any     purgatory  list or sorted set
-- KEYS[2]  string  alive
-- KEYS[3]  set     workers
-- ARGV[1]  text    worker
-- Returns  1 when it leaves something behind, else 0
-- Cost     O(1)               Repeat: safe
local purgatory, alive, workers, worker = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local left = redis.call('EXISTS', purgatory)
redis.call('DEL', alive)
if left == 0 then redis.call('SREM', workers, worker) end
return left
