#!lua
-- failed: a destination of a touch cannot be reached: write what follows in any case, and end the touch with the last.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3]    set    remaining
-- KEYS[4..]  any    places     the keys of the writes: of those that always happen, then of the others
-- ARGV[1]    bytes  uid
-- ARGV[2]    bytes  message    uid of the channel message that failed for good
-- ARGV[3]    int    always_keys  how many keys belong to what always happens
-- ARGV[4]    bytes  always     packed writes: the log
-- ARGV[5]    bytes  ending     packed writes: the callback, only if this ends the touch
-- Returns  1 when this ended the touch, 0 when others remain, -1 when it had ended or never waited
-- Cost     O(writes)           Repeat: safe; a repeat only writes what always happens, which is told apart by its uid
-- include _pending
-- include keystead.patterns:scripts/guarded/_writes
local index, record, remaining = KEYS[1], KEYS[2], KEYS[3]
local uid, message, always_keys = ARGV[1], ARGV[2], tonumber(ARGV[3])

local always, ending = read_writes(ARGV[4], 4), read_writes(ARGV[5], 4 + always_keys)
local waits = is_pending(index, record, remaining, uid)
local known = waits and redis.call('SREM', remaining, message) == 1
local left = waits and redis.call('SCARD', remaining) or 0
write_all(always, 4)
if left > 0 then return 0 end
end_touch(index, record, remaining, uid)
if not known then return -1 end
write_all(ending, 4 + always_keys)
return 1
