#!lua
-- settle: end a job: take it out of purgatory and do all that follows from its end, or nothing if it is not ours.
-- KEYS[1]  list    purgatory   or what was given up after crashes
-- KEYS[2]  hash    poison      a job that ended is no suspect any more
-- KEYS[3]  list    queue       jobs that follow are pushed here
-- KEYS[4]  list    dead        dead letters, newest right
-- KEYS[5]  hash    waiting     jobs that wait for others
-- KEYS[6]  hash    job         state of a job that is kept
-- KEYS[7]  set     dependents  who waits for this job
-- KEYS[8]  hash    batch       touched only when it belongs to one
-- KEYS[9]  string  unique      touched only when it has a unique key
-- KEYS[10] zset    delayed     jobs that waited for this one, and are to run later still
-- ARGV[1]  bytes   item        as it lies in purgatory; empty: it was taken out before it ran
-- ARGV[2]  text    uid
-- ARGV[3]  text    status      succeeded, failed or cancelled
-- ARGV[4]  bytes   letter      dead letter of a failed job; empty: none
-- ARGV[5]  bytes   follow      record of the callback; empty: none
-- ARGV[6]  int     keep_ms     how long the state is kept; 0: it has none
-- ARGV[7]  bytes   state       JSON object of the fields that change; read only when the state is kept
-- ARGV[8]  int     in_batch    0..1
-- ARGV[9]  int     is_unique   0..1
-- Returns  1, or 0 when purgatory does not hold it any more
-- Cost     O(purgatory + dependents)    Repeat: not safe; after a lost reply the job is settled or still ours
local purgatory, poison, queue, dead, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local job, dependents, batch, unique, delayed = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local item, uid, status, letter, follow, keep_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

redis.call('LLEN', queue)
redis.call('LLEN', dead)
redis.call('ZCARD', delayed)
if item ~= '' and redis.call('LREM', purgatory, 1, item) == 0 then return 0 end
local mark = redis.sha1hex(item)
redis.call('HDEL', poison, mark, 'crashed:' .. mark)
if letter ~= '' then redis.call('RPUSH', dead, letter) end
if keep_ms > 0 then
  for field, value in pairs(cjson.decode(ARGV[7])) do redis.call('HSET', job, field, value) end
  redis.call('PEXPIRE', job, keep_ms)
  for _, child in ipairs(redis.call('SMEMBERS', dependents)) do
    local record = redis.call('HGET', waiting, 'record:' .. child)
    if record then
      local left = redis.call('HINCRBY', waiting, 'left:' .. child, -1)
      if status ~= 'succeeded' then redis.call('HSET', waiting, 'failed:' .. child, uid) end
      if left == 0 or status ~= 'succeeded' then
        local due = redis.call('HGET', waiting, 'due:' .. child) or '0'
        if tonumber(due) > 0 and status == 'succeeded' then
          redis.call('ZADD', delayed, due, record)
        else
          redis.call('RPUSH', queue, record)
        end
        redis.call('HDEL', waiting, 'record:' .. child, 'left:' .. child, 'due:' .. child)
      end
    end
  end
  redis.call('DEL', dependents)
end
redis.call('HDEL', waiting, 'failed:' .. uid)
if ARGV[8] == '1' and tonumber(redis.call('HGET', batch, 'left') or '0') > 0 then
  if status ~= 'succeeded' then redis.call('HINCRBY', batch, 'failed', 1) end
  if redis.call('HINCRBY', batch, 'left', -1) == 0 then
    local after = redis.call('HGET', batch, 'then')
    if after then redis.call('RPUSH', queue, after) end
  end
end
if ARGV[9] == '1' and redis.call('GET', unique) == uid then redis.call('DEL', unique) end
if follow ~= '' then redis.call('RPUSH', queue, follow) end
return 1
