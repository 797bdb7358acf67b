#!lua
-- adopt: return what dead workers hold to the set of waiting members; an earlier time that waits there wins.
-- KEYS[1]  zset  due
-- KEYS[2]  set   workers    names of workers
-- ARGV[1]  text  purgatory_head  a worker's purgatory is this, its name, and the tail
-- ARGV[2]  text  purgatory_tail
-- ARGV[3]  text  alive_head      likewise for its heartbeat
-- ARGV[4]  text  alive_tail
-- ARGV[5]  float  not_before     returned members are due at this time or their own, whichever is later
-- DERIVES  zset  purgatory  from a name in workers
-- DERIVES  string  alive    from a name in workers
-- Returns  {workers, members}: how many workers were dead, how many members were returned
-- Cost     O(workers + members * log(n))    Repeat: safe; what was adopted is no longer there
-- include _return
local due, workers, not_before = KEYS[1], KEYS[2], tonumber(ARGV[5])

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
local gone, members = 0, 0
for _, name in ipairs(redis.call('SMEMBERS', workers)) do
  if redis.call('EXISTS', ARGV[3] .. name .. ARGV[4]) == 0 then
    members = members + return_all(ARGV[1] .. name .. ARGV[2], due, not_before)
    redis.call('SREM', workers, name)
    gone = gone + 1
  end
end
return {gone, members}
