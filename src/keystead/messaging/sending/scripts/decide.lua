#!lua
-- decide: note a decision and do what follows from it, unless one was noted before.
-- KEYS[1]    string  mark      holds the decision
-- KEYS[2..]  any     places    the keys of the writes
-- ARGV[1]    text    decision
-- ARGV[2]    int     kept_ms   1..31622400000
-- ARGV[3]    bytes   writes    packed
-- Returns  {decision; then late entries and overflow for each tally of the writes}; the one that was noted before
-- Cost     O(writes)           Repeat: safe; a repeat finds the decision and does nothing
-- include keystead.patterns:scripts/guarded/_writes
local mark, decision, kept_ms, packed = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local before = redis.call('GET', mark)
if before then return {before} end
local writes = read_writes(packed, 2)
redis.call('SET', mark, decision, 'PX', kept_ms)
return {decision, unpack(write_all(writes, 2))}
