#!lua
-- advance: give reminders of one day and zone their time and move on behind them, unless another run was faster.
-- KEYS[1]    hash   progress     start_time and uid of the last row that got its time
-- KEYS[2..]  any    places       keys of the writes
-- ARGV[1]    text   start_time   as the caller read them; both empty: there was no progress yet
-- ARGV[2]    text   uid
-- ARGV[3]    bytes  writes       packed, see guarded/_writes; they hold the new progress
-- Returns  {1 done, 0 another run was faster; then late entries and overflow for each tally}
-- Cost     O(writes)             Repeat: safe; a repeat finds itself behind
-- include keystead.patterns:scripts/guarded/_writes
local progress, start_time, uid, packed = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local found = redis.call('HMGET', progress, 'start_time', 'uid')
if (found[1] or '') ~= start_time or (found[2] or '') ~= uid then return {0} end
return {1, unpack(write_all(packed, 2))}
