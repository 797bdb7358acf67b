#!lua
-- leak_end: a link that was put aside is dealt with; do what follows from that, unless somebody else was first.
-- KEYS[1]    zset   leaked
-- KEYS[2..]  any    places   keys of the writes
-- ARGV[1]    text   code
-- ARGV[2]    bytes  writes   packed, see guarded/_writes
-- Returns  {1; then late entries and overflow}, or {0}: it was not aside any more
-- Cost     O(writes)         Repeat: not safe; a repeat finds it gone
-- include keystead.patterns:scripts/guarded/_writes
local leaked, code, packed = KEYS[1], ARGV[1], ARGV[2]

local writes = read_writes(packed, 2)
if redis.call('ZREM', leaked, code) == 0 then return {0} end
return {1, unpack(write_all(writes, 2))}
