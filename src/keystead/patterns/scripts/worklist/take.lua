#!lua
-- take: move the oldest items of a queue into a worker's purgatory and return them.
-- KEYS[1]    list  queue      oldest at the left
-- KEYS[2]    list  purgatory  the worker's own
-- KEYS[3]    hash  poison     items that a worker died with, and how often
-- KEYS[4..]  any   presence   the worker's heartbeat and the set of workers; neither for the default worker
-- ARGV[1]    int   most       1..5000
-- ARGV[2]    int   leftovers  0..1, with 1 what already lies in purgatory is returned and nothing is moved
-- ARGV[3]    text  worker
-- ARGV[4]    int   alive_ms   how long this counts as a sign of life
-- Returns    {recovered, items}: whether these are leftovers, and the items, oldest first
-- Cost       O(most)          Repeat: not safe; after a lost reply the items lie in purgatory
-- include _push
-- include _take
local queue, purgatory, poison = KEYS[1], KEYS[2], KEYS[3]
local most, leftovers, worker, alive_ms = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], ARGV[4]

if #KEYS > 3 then
  redis.call('SADD', KEYS[5], worker)
  redis.call('SET', KEYS[4], '1', 'PX', alive_ms)
end
return take_items(queue, purgatory, poison, most, leftovers)
