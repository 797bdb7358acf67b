#!lua
-- task_reclaim: put back tasks that nobody works on any more, if the caller still leads.
-- KEYS[1]  string  leader      <instance>:<epoch>
-- KEYS[2]  list    processing  ids of tasks being worked on
-- KEYS[3]  hash    payload     task by id
-- KEYS[4]  list    queue       ids of due tasks, taken right
-- KEYS[5]  zset    orphans     id by the time it was first seen without a lease
-- KEYS[6]  hash    dead        tasks that were given up
-- ARGV[1]  text    value       the leader's key, as this leader knows it
-- ARGV[2]  float   now         unix seconds
-- ARGV[3]  float   grace       how long a task may be without a lease, seconds
-- ARGV[4]  bytes   error       JSON text
-- ARGV[5]  text    active_head who works on a task: its key is this, the id, and the tail
-- ARGV[6]  text    active_tail
-- DERIVES  string  active      from an id in processing
-- Returns  {returned, dead, dropped, waiting}: dropped were cancelled or unknown, waiting are within their grace;
--          {-1} when another leads
-- Cost     O(tasks being worked on)    Repeat: safe; what was put back is not there any more
-- include _task_payload
local leader, processing, payload, queue, orphans, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local value, now, grace = ARGV[1], ARGV[2], tonumber(ARGV[3])
local error, head, tail = ARGV[4], ARGV[5], ARGV[6]

if redis.call('GET', leader) ~= value then return {-1} end
redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
redis.call('HLEN', dead)
local returned, given_up, dropped, waiting, seen = 0, 0, 0, 0, {}

local function put_back(id)
  redis.call('LREM', processing, 0, id)
  redis.call('ZREM', orphans, id)
  local raw = redis.call('HGET', payload, id)
  local task, last = raw and read_task(raw), false
  if not raw or (task and task.cancelled == true) then
    redis.call('HDEL', payload, id)
    dropped = dropped + 1
    return
  end
  if task then raw, last = failed_once(raw, task, 1, error) end  -- who claims what cannot be read gives it up
  redis.call('HSET', last and dead or payload, id, raw)
  if last then
    redis.call('HDEL', payload, id)
    given_up = given_up + 1
  else
    redis.call('RPUSH', queue, id)
    returned = returned + 1
  end
end

local function look_at(id)
  if redis.call('EXISTS', head .. id .. tail) == 1 then return 'held' end
  local since = tonumber(redis.call('ZSCORE', orphans, id))
  if since and tonumber(now) - since >= grace then
    put_back(id)
    return 'put back'
  end
  redis.call('ZADD', orphans, 'LT', now, id)  -- a time that lies ahead is an earlier leader's wrong clock
  waiting = waiting + 1
  return 'orphan'
end

for _, id in ipairs(redis.call('LRANGE', processing, 0, -1)) do
  seen[id] = seen[id] or look_at(id)
end
for _, id in ipairs(redis.call('ZRANGE', orphans, 0, -1)) do
  if seen[id] ~= 'orphan' then redis.call('ZREM', orphans, id) end
end
return {returned, given_up, dropped, waiting}
