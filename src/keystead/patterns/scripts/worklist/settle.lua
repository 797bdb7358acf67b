#!lua
-- settle: remove one item from a worker's purgatory and do the writes that follow from it; nothing if it is not there.
-- KEYS[1]    list   purgatory
-- KEYS[2]    hash   poison     items that a worker died with; a settled one is struck out
-- KEYS[3..]  any    places     keys of the writes
-- ARGV[1]    bytes  item
-- ARGV[2]    bytes  writes     packed, see guarded/_writes
-- Returns  {1; then late entries and overflow for each tally}, or {0}: another worker has adopted it, nothing happened
-- Cost     O(writes) when it is the head of purgatory, else O(writes + purgatory)
-- Repeat: not safe; a repeat may settle a second copy of an equal item
-- include _exactly
-- include keystead.patterns:scripts/guarded/_writes
local purgatory, poison, items, packed = KEYS[1], KEYS[2], {ARGV[1]}, ARGV[2]

local writes = read_writes(packed, 3)
redis.call('HLEN', poison)  -- a wrong type must show before anything is removed
local missing = remove_exactly(purgatory, items)
if #missing > 0 then return {0} end
acquit(poison, items, missing)
return {1, unpack(write_all(writes, 3))}
