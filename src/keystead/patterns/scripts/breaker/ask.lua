#!lua
-- ask: may a call be made? At most one at a time while the breaker is open, to find out whether it may close.
-- KEYS[1]  zset    calls          recent failures, or calls, by time
-- KEYS[2]  string  probe          whoever tries now, or 'opened' while it rests; expires, so that another may try
-- ARGV[1]  number  now            unix seconds
-- ARGV[2]  number  window         seconds that a call counts
-- ARGV[3]  int     trips_at       1..1000000, failures that open it
-- ARGV[4]  int     of_calls       0..1000, judge by the share of this many last calls; 0: by count
-- ARGV[5]  int     share_percent  0..100
-- ARGV[6]  text    uid            of this question
-- ARGV[7]  int     probe_ms       1..864000000, time between two tries
-- Returns  {0, failures} closed, {1, failures} half open: this call is the try, {2, failures, wait_ms} open
-- Cost     O(log n + pruned) by count, O(of_calls) by share    Repeat: safe
local calls, probe, now, window = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local trips_at, of_calls, share_percent = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local uid, probe_ms = ARGV[6], ARGV[7]
-- include _judge

local open, failures = judge()
if not open and redis.call('GET', probe) ~= 'opened' then
  return {0, failures}
end
if redis.call('SET', probe, uid, 'NX', 'PX', probe_ms) or redis.call('GET', probe) == uid then
  return {1, failures}
end
return {2, failures, redis.call('PTTL', probe)}
