#!lua
-- read: return one member's score and record; a broken pair is removed.
-- KEYS[1]  zset   index
-- KEYS[2]  hash   record
-- ARGV[1]  bytes  member
-- Returns  {score, fields}, or an empty array when there is no such member
-- Cost     O(fields)        Repeat: safe
-- include _pair
local index, record, member = KEYS[1], KEYS[2], ARGV[1]

if not whole(index, record, member) then return {} end
return {redis.call('ZSCORE', index, member), redis.call('HGETALL', record)}
