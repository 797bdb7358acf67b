#!lua
-- task_fail: end a try that failed, if the task still is the caller's: it waits for another try, or is given up.
-- KEYS[1]  list    processing  ids of tasks being worked on
-- KEYS[2]  hash    payload     task by id
-- KEYS[3]  string  active      who works on this task
-- KEYS[4]  zset    scheduled   id by the time it is due
-- KEYS[5]  hash    dead        tasks that were given up
-- ARGV[1]  text    id
-- ARGV[2]  text    holder      <worker>:<claim>
-- ARGV[3]  float   due_at      when to try again, unix seconds
-- ARGV[4]  bytes   error       JSON text
-- ARGV[5]  int     counts      0..1: whether this was one of the tries that a task has
-- ARGV[6]  int     give_up     0..1: whether another try is useless
-- ARGV[7]  bytes   instead     what to keep of a task that cannot be read
-- Returns  again, dead, cancelled, or lost: not the holder any more
-- Cost     O(tasks being worked on + size of the task)
-- Repeat: safe; after a lost reply the answer may be lost although it was done
-- include _task_payload
local processing, payload, active, scheduled, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, holder, due_at, error = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local counts, give_up, instead = tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7]

if redis.call('GET', active) ~= holder then return 'lost' end
redis.call('ZCARD', scheduled)  -- a wrong type must show before anything is removed
redis.call('HLEN', dead)
local raw = redis.call('HGET', payload, id)
local task = raw and read_task(raw)
local last = true
if task then
  raw, last = failed_once(raw, task, counts, error)
elseif raw then
  raw = instead
end
redis.call('LREM', processing, 0, id)
redis.call('DEL', active)
if not raw or (task and task.cancelled == true) then
  redis.call('HDEL', payload, id)
  return 'cancelled'
end
if last or give_up then
  redis.call('HSET', dead, id, raw)
  redis.call('HDEL', payload, id)
  return 'dead'
end
redis.call('HSET', payload, id, raw)
redis.call('ZADD', scheduled, due_at, id)
return 'again'
