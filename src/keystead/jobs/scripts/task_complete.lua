#!lua
-- task_complete: forget a task that was done, if it still is the caller's.
-- KEYS[1]  list    processing  ids of tasks being worked on
-- KEYS[2]  hash    payload     task by id
-- KEYS[3]  string  active      who works on this task
-- ARGV[1]  text    id
-- ARGV[2]  text    holder      <worker>:<claim>
-- Returns  1 done, 0 not the holder any more
-- Cost     O(tasks being worked on)    Repeat: safe; after a lost reply the answer may be 0 although it was done
local processing, payload, active, id, holder = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]

if redis.call('GET', active) ~= holder then return 0 end
redis.call('HLEN', payload)  -- a wrong type must show before anything is removed
redis.call('LREM', processing, 0, id)
redis.call('HDEL', payload, id)
redis.call('DEL', active)
return 1
