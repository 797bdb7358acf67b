#!lua
-- success: a destination of a touch was reached: write what follows in any case, and end the touch if it waits.
-- KEYS[1]    zset   index
-- KEYS[2]    hash   record
-- KEYS[3]    set    remaining
-- KEYS[4..]  any    places     the keys of the writes: of those that always happen, then of the others
-- ARGV[1]    bytes  uid
-- ARGV[2]    int    always_keys  how many keys belong to what always happens
-- ARGV[3]    bytes  always     packed writes: the log
-- ARGV[4]    bytes  ending     packed writes: the callback, only if this ends the touch
-- Returns  1 when this ended the touch, 0 when it had ended or never waited
-- Cost     O(writes)           Repeat: safe; a repeat only writes what always happens, which is told apart by its uid
-- include _pending
-- include keystead.patterns:scripts/guarded/_writes
local index, record, remaining = KEYS[1], KEYS[2], KEYS[3]
local uid, always_keys = ARGV[1], tonumber(ARGV[2])

local always, ending = read_writes(ARGV[3], 4), read_writes(ARGV[4], 4 + always_keys)
local ended = is_pending(index, record, remaining, uid)
end_touch(index, record, remaining, uid)
write_all(always, 4)
if not ended then return 0 end
write_all(ending, 4 + always_keys)
return 1
