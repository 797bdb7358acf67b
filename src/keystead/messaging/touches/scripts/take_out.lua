#!lua
-- take_out: remove one message from where it waits, and write what follows.
-- KEYS[1]    any    place      a list of messages, or a sorted set of them
-- KEYS[2..]  any    places     the keys of the writes
-- ARGV[1]    bytes  message
-- ARGV[2]    bytes  writes     packed
-- Returns  1 when it was there, 0 when not
-- Cost     O(n) for a list     Repeat: safe; a repeat finds nothing
-- include keystead.patterns:scripts/guarded/_writes
local place, message = KEYS[1], ARGV[1]

local writes = read_writes(ARGV[2], 2)
local is_list = redis.call('TYPE', place).ok == 'list'
local gone = is_list and redis.call('LREM', place, 1, message) or redis.call('ZREM', place, message)
if gone == 0 then return 0 end
write_all(writes, 2)
return 1
