#!lua
-- put_back: return items from purgatory to the queue, in their order.
-- KEYS[1]    list   purgatory
-- KEYS[2]    list   queue
-- ARGV[1]    int    front      0..1, 1: served next; 0: behind everything that waits
-- ARGV[2..]  bytes  items
-- Returns  how many were returned; the others were not in purgatory any more
-- Cost     O(items * purgatory)
-- Repeat: not safe; a repeat may return a second copy of an equal item
-- include _push
local purgatory, queue, front = KEYS[1], KEYS[2], ARGV[1] == '1'

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
local held = {}
for place = 2, #ARGV do
  if redis.call('LREM', purgatory, 1, ARGV[place]) == 1 then
    table.insert(held, front and 1 or #held + 1, ARGV[place])
  end
end
push_all(front and 'LPUSH' or 'RPUSH', queue, held)
return #held
