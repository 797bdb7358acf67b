#!lua
-- task_revive: let a task that was given up be due again, with all its tries.
-- KEYS[1]  hash   dead       tasks that were given up
-- KEYS[2]  hash   payload    task by id
-- KEYS[3]  zset   scheduled  id by the time it is due
-- ARGV[1]  text   id
-- ARGV[2]  float  run_at     unix seconds
-- Returns  revived, exists: one of this id waits already, or unknown
-- Cost     O(log n + size of the task)    Repeat: safe; it is no longer among the dead
-- include _task_payload
local dead, payload, scheduled, id, run_at = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]

local raw = redis.call('HGET', dead, id)
if not raw then return 'unknown' end
if redis.call('HEXISTS', payload, id) == 1 then return 'exists' end
redis.call('ZCARD', scheduled)  -- a wrong type must show before anything is removed
redis.call('HSET', payload, id, read_task(raw) and with_field(raw, 'attempts', '0') or raw)
redis.call('ZADD', scheduled, run_at, id)
redis.call('HDEL', dead, id)
return 'revived'
