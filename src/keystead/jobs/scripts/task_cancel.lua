#!lua
-- task_cancel: a task is not to run; one that runs already is not tried again.
-- KEYS[1]  hash    payload    task by id
-- KEYS[2]  zset    scheduled  id by the time it is due
-- KEYS[3]  string  active     who works on this task
-- ARGV[1]  text    id
-- Returns  cancelled, running, or unknown
-- Cost     O(log n + size of the task)
-- Repeat: safe; after a lost reply the answer may be unknown although it was cancelled
-- include _task_payload
local payload, scheduled, active, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local raw = redis.call('HGET', payload, id)
local runs = redis.call('EXISTS', active) == 1
if not raw then return 'unknown' end
if redis.call('ZREM', scheduled, id) == 1 then
  redis.call('HDEL', payload, id)
  return 'cancelled'
end
-- It lies in the queue, or with a worker. Whoever meets it next sees the mark and drops it.
if read_task(raw) then redis.call('HSET', payload, id, with_field(raw, 'cancelled', 'true')) end
return runs and 'running' or 'cancelled'
