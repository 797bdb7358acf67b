#!lua
-- take_more: move members that are due into a worker's purgatory, whatever it holds, and return them.
-- KEYS[1]    zset   due        member by the time it is due
-- KEYS[2]    zset   purgatory  the worker's own; scores are kept
-- KEYS[3]    hash   poison     members that a worker died with, and how often
-- KEYS[4..]  any    presence   the worker's heartbeat and the set of workers; neither for the default worker
-- ARGV[1]    float  now        unix seconds
-- ARGV[2]    int    most       1..5000
-- ARGV[3]    text   worker
-- ARGV[4]    int    alive_ms   how long this counts as a sign of life
-- Returns  {0, pairs}: member, score, member, score, earliest first
-- Cost     O(most * log(n))    Repeat: not safe; after a lost reply the members lie in purgatory
-- include _take
local due, purgatory, poison = KEYS[1], KEYS[2], KEYS[3]
local now, most, worker, alive_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

redis.call('ZCARD', purgatory)  -- a wrong type must show before anything is removed
show_life(worker, alive_ms)
return {0, move_due(due, purgatory, poison, now, most)}
