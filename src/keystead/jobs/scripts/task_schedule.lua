#!lua
-- task_schedule: let a task be due at a time; what is known under its id stays, or gives way to it.
-- KEYS[1]  hash   payload    task by id
-- KEYS[2]  zset   scheduled  id by the time it is due
-- KEYS[3]  list   queue      ids of due tasks
-- ARGV[1]  text   id
-- ARGV[2]  float  run_at     unix seconds
-- ARGV[3]  bytes  task       JSON
-- ARGV[4]  text   mode       keep; replace: also one that is due and waits; earlier: only one that is due later
-- Returns  new, replaced, exists (left as it is), or running (left as it is)
-- Cost     O(log n); O(due tasks) to replace one that is due already
-- Repeat: not safe; the task may have been run and forgotten before the repeat
-- include _task_payload
local payload, scheduled, queue = KEYS[1], KEYS[2], KEYS[3]
local id, run_at, task, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local known = redis.call('HGET', payload, id)
local due_at = redis.call('ZSCORE', scheduled, id)
redis.call('LLEN', queue)  -- a wrong type must show before anything is written
if known and not due_at and is_cancelled(known) then
  if redis.call('LREM', queue, 1, id) == 0 then return 'running' end
  known = false
elseif known and (mode == 'keep' or (mode == 'earlier' and tonumber(run_at) >= tonumber(due_at or '-inf'))) then
  return 'exists'
elseif known and not due_at and redis.call('LREM', queue, 1, id) == 0 then
  return 'running'
end
redis.call('HSET', payload, id, task)
redis.call('ZADD', scheduled, run_at, id)
return known and 'replaced' or 'new'
