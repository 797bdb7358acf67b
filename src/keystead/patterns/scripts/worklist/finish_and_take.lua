#!lua
-- finish_and_take: remove finished items from purgatory and take the next ones, in one step.
-- KEYS[1]    list   queue      oldest at the left
-- KEYS[2]    list   purgatory  the worker's own
-- KEYS[3]    hash   poison     items that a worker died with, and how often
-- KEYS[4..]  any    presence   the worker's heartbeat and the set of workers; neither for the default worker
-- ARGV[1]    int    most       1..5000
-- ARGV[2]    text   worker
-- ARGV[3]    int    alive_ms   how long this counts as a sign of life
-- ARGV[4..]  bytes  items      finished; one copy of each is removed
-- Returns  {missing, {recovered, items}}: places of items that were not there; then as take, leftovers first
-- Cost     O(items + most)
-- Repeat: not safe; after a lost reply the next items lie in purgatory
-- include _push
-- include _arguments
-- include _take
-- include _life
-- include _exactly
local queue, purgatory, poison = KEYS[1], KEYS[2], KEYS[3]
local most, worker, alive_ms, items = tonumber(ARGV[1]), ARGV[2], ARGV[3], arguments_from(4)

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
redis.call('HLEN', poison)
show_life(worker, alive_ms)
local missing = remove_exactly(purgatory, items)
acquit(poison, items, missing)
return {missing, take_items(queue, purgatory, poison, most, true)}
