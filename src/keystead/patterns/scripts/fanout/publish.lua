#!lua
-- publish: number an event and send it.
-- KEYS[1]  string  sequence    number of the last event of this room
-- ARGV[1]  int     lasting_ms  how long the number is kept after the last event
-- ARGV[2]  text    publish     PUBLISH or SPUBLISH
-- ARGV[3]  text    channel
-- ARGV[4]  bytes   before      the envelope up to the number
-- ARGV[5]  bytes   after       the envelope behind it
-- Returns  the number
-- Cost     O(1) and the listeners of the channel
-- Repeat: not safe; the event would be sent twice
local sequence, lasting_ms = KEYS[1], ARGV[1]
local publish, channel, before, after = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local number = redis.call('INCR', sequence)
redis.call('PEXPIRE', sequence, lasting_ms)
redis.call(publish, channel, before .. string.format('%.0f', number) .. after)
return number
