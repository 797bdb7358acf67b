#!lua
-- take_more: move the oldest items of a queue into a worker's purgatory, whatever it holds, and return them.
-- KEYS[1]    list  queue      oldest at the left
-- KEYS[2]    list  purgatory  the worker's own
-- KEYS[3]    hash  poison     items that a worker died with, and how often
-- KEYS[4..]  any   presence   the worker's heartbeat and the set of workers; neither for the default worker
-- ARGV[1]    int   most       1..5000
-- ARGV[2]    text  worker
-- ARGV[3]    int   alive_ms   how long this counts as a sign of life
-- Returns  {recovered, items}: whether these lay in purgatory already, and the items, oldest first
-- Cost     O(most)            Repeat: not safe; after a lost reply the items lie in purgatory
-- include _push
-- include _take
-- include _life
local queue, purgatory, poison = KEYS[1], KEYS[2], KEYS[3]
local most, worker, alive_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3]

show_life(worker, alive_ms)
return take_items(queue, purgatory, poison, most, false)
