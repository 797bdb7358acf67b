#!lua
-- once: do writes unless they were done before under the same mark, or a list is full.
-- KEYS[1]    string  mark      one of the writes sets it
-- KEYS[2..]  any     places    the list that may be full, if one is named; then the keys of the writes
-- ARGV[1]    int     most      the list is full with so many; -1: no list is named
-- ARGV[2]    bytes   writes    packed, see _writes
-- Returns  {1 done, 0 seen before, -1 full; then late entries and overflow for each tally of the writes}
-- Cost     O(writes)           Repeat: safe; a repeat finds the mark and does nothing
-- include _writes
local mark, most, packed = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local first_key = most >= 0 and 3 or 2

if redis.call('EXISTS', mark) == 1 then return {0} end
if most >= 0 and redis.call('LLEN', KEYS[2]) >= most then return {-1} end
return {1, unpack(write_all(packed, first_key))}
