#!lua
-- drop: end a touch that waits, whatever its destinations, and write what follows.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3]    set    remaining
-- KEYS[4..]  any    places     the keys of the writes
-- ARGV[1]    bytes  uid
-- ARGV[2]    bytes  broken     packed writes: if a part of it was missing
-- ARGV[3]    int    broken_keys  how many keys belong to these
-- ARGV[4]    bytes  ending     packed writes: the callback and the count
-- Returns  1 when this ended the touch, 0 when nothing was there, -1 when a part was missing and the rest was removed
-- Cost     O(writes)           Repeat: safe; a repeat finds nothing
-- include _pending
-- include keystead.patterns:scripts/guarded/_writes
local index, record, remaining, uid = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local broken_keys = tonumber(ARGV[3])

local broken, ending = read_writes(ARGV[2], 4), read_writes(ARGV[4], 4 + broken_keys)
local indexed, waits = redis.call('ZSCORE', index, uid), is_pending(index, record, remaining, uid)
end_touch(index, record, remaining, uid)
if not indexed then return 0 end
if not waits then write_all(broken, 4) return -1 end
write_all(ending, 4 + broken_keys)
return 1
