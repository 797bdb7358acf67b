#!lua
-- purgatory_take: put entries that are due off for a while and return them, so that one sweep works on each.
-- KEYS[1]  zset   purgatory  entries by the time from which they are to be purged
-- ARGV[1]  float  now        unix seconds
-- ARGV[2]  float  until      when they are due again, unless finished before
-- ARGV[3]  int    most       1..1000
-- Returns  array of entries, longest due first; empty when nothing is due
-- Cost     O(most log n)     Repeat: safe; after a lost reply the entries come back by themselves
local purgatory, now, again, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

local due = redis.call('ZRANGE', purgatory, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
for _, entry in ipairs(due) do
  redis.call('ZADD', purgatory, 'XX', again, entry)
end
return due
