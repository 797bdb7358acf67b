#!lua
-- attempt: try a value: some different ones are free, then one new value is allowed after each pause.
-- KEYS[1]  zset   tried     value by when it was first tried, in seconds
-- ARGV[1]  int    now       microseconds of unix time
-- ARGV[2]  int    free      1..100000
-- ARGV[3]  int    pause     microseconds
-- ARGV[4]  int    lasts_ms  how long the attempts are remembered from now on
-- ARGV[5]  int    counts    0..1, 0 only looks
-- ARGV[6]  bytes  value
-- Returns  {allowed, remaining, retry_ms, reset_ms, start in microseconds}
-- Cost     O(log tried)     Repeat: safe
-- include _answer
local tried, now, free, pause, lasts_ms = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local counts, value = ARGV[5] == '1', ARGV[6]

local known, used = redis.call('ZSCORE', tried, value), redis.call('ZCARD', tried)
local newest = redis.call('ZRANGE', tried, 0, 0, 'REV', 'WITHSCORES')[2]
local wait = used >= free and newest * 1e6 + pause - now or 0
local fits = known or wait <= 0
if fits and counts then
  redis.call('ZADD', tried, 'NX', string.format('%.6f', now / 1e6), value)
  redis.call('PEXPIRE', tried, lasts_ms)
end
return answer(fits, math.max(0, free - used - (known and 0 or 1)), wait / 1e3, math.max(0, redis.call('PTTL', tried)), now)
