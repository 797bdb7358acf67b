#!lua
-- fail: count a failed try of an item; put it back behind the others, or among the dead letters after the last try.
-- KEYS[1]  list   purgatory
-- KEYS[2]  list   queue
-- KEYS[3]  hash   poison      tries so far, by the item's SHA-1
-- KEYS[4]  list   dead        dead letters, newest right
-- ARGV[1]  bytes  item
-- ARGV[2]  int    tries       1..1000
-- ARGV[3]  int    held_ms     how long tries are remembered, counted from the last one
-- ARGV[4]  text   facts       error and time of a dead letter, JSON without its opening brace
-- ARGV[5]  int    most_dead   the oldest letters beyond so many are dropped; 0: none are
-- Returns  tries so far; its negative when the item is dead now; 0 when purgatory does not hold it
-- Cost     O(purgatory)       Repeat: not safe; a repeat counts again
-- include _push
-- include _crashed
local purgatory, queue, poison, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local item, tries, held_ms, facts, most_dead = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
redis.call('LLEN', dead)
redis.call('HLEN', poison)
if redis.call('LREM', purgatory, 1, item) == 0 then return 0 end
local left = accuse({item}, poison, dead, tries, held_ms, facts, false)
if #left == 0 then
  if most_dead > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
  return -tries
end
redis.call('RPUSH', queue, item)
return tonumber(redis.call('HGET', poison, redis.sha1hex(item)))
