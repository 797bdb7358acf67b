#!lua
-- task_heartbeat: give the one who works on a task its whole lease again.
-- KEYS[1]  string  active    who works on this task
-- ARGV[1]  text    holder    <worker>:<claim>
-- ARGV[2]  int     lease_ms  1..86400000
-- Returns  1 renewed, 0 not the holder any more
-- Cost     O(1)              Repeat: safe
local active, holder, lease_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', active) ~= holder then return 0 end
return redis.call('PEXPIRE', active, lease_ms)
