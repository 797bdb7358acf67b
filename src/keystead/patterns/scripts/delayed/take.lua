#!lua
-- take: return what a worker's purgatory holds; if nothing, first move members there that are due.
-- KEYS[1]    zset   due        member by the time it is due
-- KEYS[2]    zset   purgatory  the worker's own; scores are kept
-- KEYS[3]    hash   poison     members that a worker died with, and how often
-- KEYS[4..]  any    presence   the worker's heartbeat and the set of workers; neither for the default worker
-- ARGV[1]    float  now        unix seconds
-- ARGV[2]    int    most       1..5000
-- ARGV[3]    text   worker
-- ARGV[4]    int    alive_ms   how long this counts as a sign of life
-- Returns  {recovered, pairs}: whether these lay in purgatory already; member, score, member, score, earliest first
-- Cost     O(most * log(n))    Repeat: safe; it returns the same members
-- include _take
local due, purgatory, poison = KEYS[1], KEYS[2], KEYS[3]
local now, most, worker, alive_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local held = redis.call('ZRANGE', purgatory, 0, most - 1, 'WITHSCORES')
show_life(worker, alive_ms)
if #held > 0 then return {1, apart(held, poison)} end
return {0, move_due(due, purgatory, poison, now, most)}
