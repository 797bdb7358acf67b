#!lua
-- recover: at the start of a worker, count a crash against what its purgatory holds and return that to the queue.
-- KEYS[1]  list  purgatory
-- KEYS[2]  list  queue
-- KEYS[3]  hash  poison     crashes so far, by the item's SHA-1
-- KEYS[4]  list  dead       dead letters, newest right
-- ARGV[1]  int   tries      1..1000
-- ARGV[2]  int   held_ms    how long crashes are remembered, counted from the last one
-- ARGV[3]  text  facts      error and time of a dead letter, JSON without its opening brace
-- ARGV[4]  int   most_dead  the oldest letters beyond so many are dropped; 0: none are
-- Returns  {left, dead}: how many items went to the front of the queue in their order, how many became dead letters
-- Cost     O(purgatory)     Repeat: safe; what was recovered is no longer there
-- include _push
-- include _crashed
local purgatory, queue, poison, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tries, held_ms, facts, most_dead = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

redis.call('LLEN', queue)
redis.call('LLEN', dead)
local left, buried = accuse(redis.call('LRANGE', purgatory, 0, -1), poison, dead, tries, held_ms, facts, true)
push_all('LPUSH', queue, reversed(left))
redis.call('DEL', purgatory)
if most_dead > 0 and buried > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return {#left, buried}
