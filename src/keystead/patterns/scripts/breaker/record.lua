#!lua
-- record: note how a call ended. A failure may open the breaker; a try that went well closes it.
-- KEYS[1]  zset    calls          recent failures, or calls, by time
-- KEYS[2]  string  probe          whoever tries now, or 'opened' while it rests
-- ARGV[1]  number  now            unix seconds
-- ARGV[2]  number  window         seconds that a call counts
-- ARGV[3]  int     trips_at       1..1000000, failures that open it
-- ARGV[4]  int     of_calls       0..1000, judge by the share of this many last calls; 0: by count
-- ARGV[5]  int     share_percent  0..100
-- ARGV[6]  text    uid            of the question that allowed this call
-- ARGV[7]  int     went_well      0..1
-- ARGV[8]  int     is_probe       0..1
-- ARGV[9]  int     kept_ms        1..864000000, expiry of the calls
-- ARGV[10] int     rest_ms        0..864000000, time from opening to the first try; open all the while
-- ARGV[11..] text  others         uids of further calls that ended so, in the same moment
-- Returns  {state, failures}: 0 closed, 2 open
-- Cost     O(log n + pruned) by count, O(of_calls) by share    Repeat: safe; a call is noted once under its uid
local calls, probe, now, window = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local trips_at, of_calls, share_percent = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local uid, went_well, is_probe = ARGV[6], ARGV[7] == '1', ARGV[8] == '1'
local kept_ms, rest_ms = ARGV[9], tonumber(ARGV[10])
-- include _judge

if went_well and is_probe then
  redis.call('DEL', calls, probe)
  return {0, 0}
end
local was_open = judge()
if not went_well or of_calls > 0 then
  local how = went_well and 's:' or 'f:'
  local noted = {now, how .. uid}
  for place = 11, #ARGV do
    noted[#noted + 1], noted[#noted + 2] = now, how .. ARGV[place]
  end
  redis.call('ZADD', calls, unpack(noted))
  redis.call('PEXPIRE', calls, kept_ms)
end
if of_calls > 0 then
  redis.call('ZREMRANGEBYRANK', calls, 0, -of_calls - 1)
end
local open, failures = judge()
if open and not was_open and rest_ms > 0 then
  redis.call('SET', probe, 'opened', 'NX', 'PX', rest_ms)
end
-- While it rests it stays open, even when failures leave the window meanwhile.
local resting = redis.call('GET', probe) == 'opened'
return {(open or resting) and 2 or 0, failures}
