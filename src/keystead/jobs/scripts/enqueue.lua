#!lua
-- enqueue: admit one job with options: unique, kept, delayed, or after others. All or nothing.
-- KEYS[1]    list    queue       it goes to the end of this
-- KEYS[2]    zset    delayed     or into this, when it is to run later
-- KEYS[3]    hash    job         its state, written when it is kept
-- KEYS[4]    string  unique      touched only when it has a unique key
-- KEYS[5]    hash    waiting     jobs that wait for others
-- KEYS[6..]  any     parents     state and dependents of each job it waits for, in pairs
-- ARGV[1]    bytes   record
-- ARGV[2]    text    uid
-- ARGV[3]    text    name
-- ARGV[4]    float   queued_at
-- ARGV[5]    float   due         0: at once
-- ARGV[6]    int     open_ms     how long the state of a job that does not end is kept; 0: it has no state
-- ARGV[7]    int     unique_ms   how long a unique key holds at most; 0: it has none
-- Returns  uid of the job that is queued now, which is another one's when the key was taken; or the place (from 1) of
--          a parent that is not known
-- Cost     O(parents)            Repeat: not safe; a repeat may queue it again
local queue, delayed, job, unique, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local record, uid, name, queued_at, due = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local open_ms, unique_ms = tonumber(ARGV[6]), tonumber(ARGV[7])

local left, failed = {}, nil
for place = 6, #KEYS, 2 do
  local status = redis.call('HGET', KEYS[place], 'status')
  if not status then return (place - 4) / 2 end
  if status == 'failed' or status == 'cancelled' then
    failed = KEYS[place]
  elseif status ~= 'succeeded' then
    left[#left + 1] = KEYS[place + 1]
  end
end
if unique_ms > 0 then
  local taken = redis.call('SET', unique, uid, 'NX', 'GET', 'PX', unique_ms)
  if taken then return taken end
end
local status = 'queued'
if #left > 0 and not failed then
  status = 'waiting'
  redis.call('HSET', waiting, 'record:' .. uid, record, 'left:' .. uid, #left)
  if tonumber(due) > 0 then redis.call('HSET', waiting, 'due:' .. uid, due) end
  for _, dependents in ipairs(left) do
    redis.call('SADD', dependents, uid)
    redis.call('PEXPIRE', dependents, open_ms)
  end
else
  if failed then redis.call('HSET', waiting, 'failed:' .. uid, failed) end
  if tonumber(due) > 0 then
    status = 'delayed'
    redis.call('ZADD', delayed, due, record)
  else
    redis.call('RPUSH', queue, record)
  end
end
if open_ms > 0 then
  redis.call('HSET', job, 'name', name, 'status', status, 'queued_at', queued_at)
  redis.call('PEXPIRE', job, open_ms)
end
return uid
