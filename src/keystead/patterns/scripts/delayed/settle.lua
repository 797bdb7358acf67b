#!lua
-- settle: remove one member from a worker's purgatory and do the writes that follow; nothing if it is not there.
-- KEYS[1]    zset   purgatory
-- KEYS[2]    hash   poison     members that a worker died with; a settled one is struck out
-- KEYS[3..]  any    places     keys of the writes
-- ARGV[1]    bytes  member
-- ARGV[2]    bytes  writes     packed, see guarded/_writes
-- Returns  {1; then late entries and overflow for each tally}, or {0}: another worker has adopted it, nothing happened
-- Cost     O(writes + log(n))
-- Repeat: not safe; a repeat finds nothing and says that it was another's
-- include _acquit
-- include keystead.patterns:scripts/guarded/_writes
local purgatory, poison, member, packed = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local writes = read_writes(packed, 3)
local suspects = redis.call('HLEN', poison) > 0  -- a wrong type must show before anything is removed
if redis.call('ZREM', purgatory, member) == 0 then return {0} end
if suspects then acquit(poison, member) end
return {1, unpack(write_all(writes, 3))}
