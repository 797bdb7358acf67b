#!lua
-- recurring_run: queue the due runs of a recurring job and let it wait for its next one, unless that was done already.
-- KEYS[1]    zset    waiting
-- KEYS[2]    string  hash      of the list in force
-- KEYS[3]    hash    last
-- KEYS[4]    list    hot
-- ARGV[1]    text    list      hash of the list
-- ARGV[2]    text    job       its hash
-- ARGV[3]    float   seen      the score it was seen with
-- ARGV[4]    int     next      unix time of the next run, later than seen
-- ARGV[5]    int     ran       unix time of the newest run that is queued
-- ARGV[6..]  bytes   records   to be queued; none where all runs are too late
-- Returns  1: done; 0: the job does not wait with that score any more; -1: another list is in force
-- Cost     O(records + log(jobs))    Repeat: safe; it answers 0
local waiting, hash, last, hot = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local list, job, seen, following, ran = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

if redis.call('GET', hash) ~= list then return -1 end
if tonumber(redis.call('ZSCORE', waiting, job) or '') ~= seen then return 0 end

for at = 6, #ARGV do redis.call('RPUSH', hot, ARGV[at]) end
if #ARGV > 5 then redis.call('HSET', last, job, ran) end
redis.call('ZADD', waiting, following, job)
return 1
