#!lua
-- remove: delete record and index entry together, unless changed, and push ready values onto lists in the same step.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3..]  list   targets   same tag; any number
-- ARGV[1]    bytes  member
-- ARGV[2]    text   changes   field that counts changes; empty: none does
-- ARGV[3]    text   expected  its value as the caller saw it; empty: whatever it is
-- ARGV[4..]  bytes  ready     one value for each target
-- Returns  1 when done, 0 when there is no such member (a broken pair is removed), -1 when it was changed
-- Cost     O(log(n) + targets)
-- Repeat: not safe; a repeat finds nothing
-- include _pair
-- include _guard
-- include _ready
local index, record, member, changes, expected = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

check_lists()
local found = guarded(index, record, member, changes, expected)
if found ~= 1 then return found end
redis.call('ZREM', index, member)
redis.call('DEL', record)
push_ready(#ARGV - (#KEYS - 3))
return 1
