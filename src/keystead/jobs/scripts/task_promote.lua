#!lua
-- task_promote: move due tasks to the queue, in the order in which they are due, if the caller still leads.
-- KEYS[1]  string  leader     <instance>:<epoch>
-- KEYS[2]  zset    scheduled  id by the time it is due
-- KEYS[3]  hash    payload    task by id
-- KEYS[4]  list    queue      pushed left, taken right
-- KEYS[5]  string  paused     while it is there nothing moves
-- ARGV[1]  text    value      the leader's key, as this leader knows it
-- ARGV[2]  float   now        unix seconds
-- ARGV[3]  int     most       1..1000
-- Returns  {moved, dropped, next}: dropped had no task, next is when the next one is due, as text, or empty;
--          {-1} when another leads; {-2} while paused
-- Cost     O(most * log(n))
-- Repeat: safe; a repeat moves what is due then, how many the first one moved is not told
local leader, scheduled, payload, queue, paused = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local value, now, most = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('GET', leader) ~= value then return {-1} end
if redis.call('EXISTS', paused) == 1 then return {-2} end
redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
local moved, dropped = 0, 0
for _, id in ipairs(redis.call('ZRANGE', scheduled, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)) do
  if redis.call('HEXISTS', payload, id) == 1 then
    redis.call('LPUSH', queue, id)
    moved = moved + 1
  else
    dropped = dropped + 1
  end
  redis.call('ZREM', scheduled, id)
end
return {moved, dropped, redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2] or ''}
