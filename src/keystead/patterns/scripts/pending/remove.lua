#!lua
-- remove: delete record and index entry together, unless changed, and do writes in the same step.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3..]  any    places    keys of the writes
-- ARGV[1]    bytes  member
-- ARGV[2]    text   changes   field that counts changes; empty: none does
-- ARGV[3]    text   expected  its value as the caller saw it; empty: whatever it is
-- ARGV[4]    bytes  writes    packed, see guarded/_writes; empty: none
-- Returns  {1 when done; then late entries and overflow for each tally}; {0} when there is no such member (a broken pair
--          is removed), {-1} when it was changed
-- Cost     O(log(n) + writes)
-- Repeat: not safe; a repeat finds nothing
-- include _pair
-- include _guard
-- include keystead.patterns:scripts/guarded/_writes
local index, record, member, changes, expected, packed = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local writes = read_writes(packed, 3)
local found = guarded(index, record, member, changes, expected)
if found ~= 1 then return {found} end
redis.call('ZREM', index, member)
redis.call('DEL', record)
return {1, unpack(write_all(writes, 3))}
