#!lua
-- open: write a member's record and its place in the index together.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- ARGV[1]    bytes  member
-- ARGV[2]    float  score
-- ARGV[3]    int    only_new   0..1, with 1 a whole pair that is there already stays
-- ARGV[4..]  bytes  fields     field, value, field, value
-- Returns  1 when it was written, 0 when it was there already
-- Cost     O(fields + log(n))
-- Repeat: not safe; a repeat with only_new says that it was there
-- include _pair
local index, record, member, score, only_new = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3] == '1'

if only_new and whole(index, record, member) then return 0 end
redis.call('ZADD', index, score, member)
redis.call('DEL', record)
redis.call('HSET', record, unpack(ARGV, 4))
return 1
