#!lua
-- move_due: move members that are due to the end of a list, as long as the list has room.
-- KEYS[1]  zset   due
-- KEYS[2]  list   target
-- ARGV[1]  float  now      unix seconds; what is due by then moves
-- ARGV[2]  int    most     1..5000
-- ARGV[3]  int    limit    the list grows no longer than this; -1: no limit
-- Returns  {reason, moved}; reason is src_empty, max_count, backpressure or max_score
-- Cost     O(most * log(n))    Repeat: not safe; a repeat moves others
local due, target = KEYS[1], KEYS[2]
local now, most, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local room = most
local length = redis.call('LLEN', target)
if limit >= 0 then room = math.max(0, math.min(most, limit - length)) end
local found = room > 0 and redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, room) or {}
for _, member in ipairs(found) do
  redis.call('RPUSH', target, member)
  redis.call('ZREM', due, member)
end
local reason = 'max_score'
if redis.call('ZCARD', due) == 0 then
  reason = 'src_empty'
elseif #found == most then
  reason = 'max_count'
elseif #found == room then
  reason = 'backpressure'
end
return {reason, #found}
