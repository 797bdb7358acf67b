#!lua
-- task_claim: begin a task that was moved from the queue to those being worked on, under a lease.
-- KEYS[1]  list    processing  ids of tasks being worked on, newest left
-- KEYS[2]  hash    payload     task by id
-- KEYS[3]  string  active      who works on this task
-- KEYS[4]  list    queue       ids of due tasks, taken right
-- KEYS[5]  zset    orphans     ids without a lease
-- KEYS[6]  string  paused      while it is there nothing begins
-- ARGV[1]  text    id
-- ARGV[2]  text    holder      <worker>:<claim>
-- ARGV[3]  int     lease_ms    1..86400000
-- Returns  {claimed, task}; {taken}: another has it, or it lies in the queue again; {dropped}: cancelled or unknown;
--          {paused}: it was put back
-- Cost     O(tasks being worked on)    Repeat: safe; the same holder gets the same answer
-- include _task_payload
local processing, payload, active, queue, orphans, paused = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, holder, lease_ms = ARGV[1], ARGV[2], ARGV[3]

local copies = #redis.call('LPOS', processing, id, 'COUNT', 2)
local found = redis.call('GET', active)
local task = redis.call('HGET', payload, id)
redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
if found == holder and task then return {'claimed', task} end
if found then
  -- A single copy belongs to whoever works on the task: without it, nobody would find the task after a crash.
  if copies > 1 then redis.call('LREM', processing, 1, id) end
  return {'taken'}
end
if copies == 0 then return {'taken'} end
redis.call('ZREM', orphans, id)
if not task or is_cancelled(task) then
  redis.call('LREM', processing, 0, id)
  redis.call('HDEL', payload, id)
  return {'dropped'}
end
if redis.call('EXISTS', paused) == 1 then
  redis.call('LREM', processing, 0, id)
  redis.call('RPUSH', queue, id)
  return {'paused'}
end
redis.call('SET', active, holder, 'PX', lease_ms)
return {'claimed', task}
