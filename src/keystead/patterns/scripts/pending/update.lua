#!lua
-- update: change fields of a record, and its score if asked, unless someone else changed it first; counts the change.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- ARGV[1]    bytes  member
-- ARGV[2]    text   changes   field that counts changes; empty: none does
-- ARGV[3]    text   expected  its value as the caller saw it; empty: whatever it is
-- ARGV[4]    text   score     new score; empty: as it is
-- ARGV[5]    int    removed   0..1000, how many of the following are fields to remove
-- ARGV[6..]  bytes  fields    fields to remove, then field, value, field, value
-- Returns  1 when done, 0 when there is no such member (a broken pair is removed), -1 when it was changed
-- Cost     O(fields + log(n))
-- Repeat: not safe; a repeat finds it changed
-- include _pair
-- include _guard
local index, record, member = KEYS[1], KEYS[2], ARGV[1]
local changes, expected, score, removed = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

local found = guarded(index, record, member, changes, expected)
if found ~= 1 then return found end
if changes ~= '' then redis.call('HINCRBY', record, changes, 1) end  -- first: it fails if that is no number
for place = 6, 5 + removed do redis.call('HDEL', record, ARGV[place]) end
if #ARGV > 5 + removed then redis.call('HSET', record, unpack(ARGV, 6 + removed)) end
if score ~= '' then redis.call('ZADD', index, score, member) end
return 1
