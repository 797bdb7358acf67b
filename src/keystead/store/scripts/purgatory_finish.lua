#!lua
-- purgatory_finish: strike an entry off: its object is saved, or gone.
-- KEYS[1]  zset   purgatory  entries by the time from which they are to be purged
-- KEYS[2]  hash   failures   entry → how often its purge failed
-- ARGV[1]  bytes  entry      as it stands in the list
-- Returns  1 if it was listed, 0 if not
-- Cost     O(log n)          Repeat: safe
local purgatory, failures, entry = KEYS[1], KEYS[2], ARGV[1]

redis.call('HDEL', failures, entry)
return redis.call('ZREM', purgatory, entry)
