#!lua
-- retry: move a job from purgatory among those that run later, changed to tell of the failed try.
-- KEYS[1]  list   purgatory
-- KEYS[2]  hash   poison     it did not kill its worker
-- KEYS[3]  zset   delayed
-- KEYS[4]  hash   job        state of a job that is kept
-- ARGV[1]  bytes  item       as it lies in purgatory
-- ARGV[2]  bytes  changed    as it is to wait
-- ARGV[3]  float  due        unix seconds
-- ARGV[4]  bytes  error      empty: the job has no state
-- ARGV[5]  int    attempts
-- Returns  1, or 0 when purgatory does not hold it any more
-- Cost     O(purgatory + log(delayed))    Repeat: safe; a repeat finds nothing in purgatory
local purgatory, poison, delayed, job = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local item, changed, due, reason, attempts = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

redis.call('ZCARD', delayed)
if redis.call('LREM', purgatory, 1, item) == 0 then return 0 end
local mark = redis.sha1hex(item)
redis.call('HDEL', poison, mark, 'crashed:' .. mark)
redis.call('ZADD', delayed, due, changed)
if reason ~= '' and redis.call('EXISTS', job) == 1 then
  redis.call('HSET', job, 'status', 'retrying', 'error', reason, 'attempts', attempts)
end
return 1
