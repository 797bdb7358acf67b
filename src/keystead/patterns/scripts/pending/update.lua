#!lua
-- update: change fields of a record, and its score if asked, unless someone else changed it first; counts the change.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3..]  any    places    keys of the writes
-- ARGV[1]    bytes  member
-- ARGV[2]    text   changes   field that counts changes; empty: none does
-- ARGV[3]    text   expected  its value as the caller saw it; empty: whatever it is
-- ARGV[4]    text   score     new score; empty: as it is
-- ARGV[5]    bytes  writes    packed, see guarded/_writes; empty: none
-- ARGV[6]    int    removed   0..1000, how many of the following are fields to remove
-- ARGV[7..]  bytes  fields    fields to remove, then field, value, field, value
-- Returns  {1 when done; then late entries and overflow for each tally}; {0} when there is no such member (a broken pair
--          is removed), {-1} when it was changed
-- Cost     O(fields + log(n) + writes)
-- Repeat: not safe; a repeat finds it changed
-- include _pair
-- include _guard
-- include keystead.patterns:scripts/guarded/_writes
local index, record, member = KEYS[1], KEYS[2], ARGV[1]
local changes, expected, score, packed, removed = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

local writes = read_writes(packed, 3)
local found = guarded(index, record, member, changes, expected)
if found ~= 1 then return {found} end
if changes ~= '' then redis.call('HINCRBY', record, changes, 1) end  -- first: it fails if that is no number
for place = 7, 6 + removed do redis.call('HDEL', record, ARGV[place]) end
if #ARGV > 6 + removed then redis.call('HSET', record, unpack(ARGV, 7 + removed)) end
if score ~= '' then redis.call('ZADD', index, score, member) end
return {1, unpack(write_all(writes, 3))}
