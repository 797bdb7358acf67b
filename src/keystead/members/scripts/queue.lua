#!lua
-- queue: append an item, unless the queue is full or the same one came just now.
-- KEYS[1]  list    queue
-- KEYS[2]  string  repeated   mark of what came just now
-- ARGV[1]  int     limit      1..1000000 items
-- ARGV[2]  int     held_ms    1..86400000, how long the mark holds
-- ARGV[3]  bytes   item
-- Returns  1 when it was appended, 0 when the same came just now, -1 when the queue is full, which leaves no mark
-- Cost     O(1)               Repeat: safe; a repeat finds the mark
local queue, repeated, limit, held_ms, item = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2], ARGV[3]

if redis.call('LLEN', queue) >= limit then
  return -1
end
if not redis.call('SET', repeated, '1', 'NX', 'PX', held_ms) then
  return 0
end
redis.call('RPUSH', queue, item)
return 1
