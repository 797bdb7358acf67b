#!lua
-- create: put a link into the buffer, unless its code is there already, and count it.
-- KEYS[1]    zset   buffer   codes by created_at
-- KEYS[2]    hash   link     of this code
-- KEYS[3..]  any    places   keys of the writes
-- ARGV[1]    text   code
-- ARGV[2]    text   created_at  unix seconds
-- ARGV[3]    bytes  fields   MessagePack: the fields of the link, each with its value
-- ARGV[4]    bytes  writes   packed, see guarded/_writes: what is counted
-- Returns  {1; then late entries and overflow}, or {0}: the code is taken
-- Cost     O(log(links))     Repeat: not safe; a repeat finds the code taken
-- include keystead.patterns:scripts/guarded/_writes
local buffer, link, code, created_at = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local fields, packed = ARGV[3], ARGV[4]

local writes = read_writes(packed, 3)
if redis.call('ZSCORE', buffer, code) or redis.call('EXISTS', link) == 1 then return {0} end
redis.call('ZADD', buffer, created_at, code)
redis.call('HSET', link, unpack(cmsgpack.unpack(fields)))
return {1, unpack(write_all(writes, 3))}
