#!lua
-- purgatory_fail: count a failed purge and put the entry off, twice as long each time.
-- KEYS[1]  zset   purgatory  entries by the time from which they are to be purged
-- KEYS[2]  hash   failures   entry → how often its purge failed
-- ARGV[1]  bytes  entry      as it stands in the list
-- ARGV[2]  float  now        unix seconds
-- ARGV[3]  int    first      1..86400 seconds after the first failure
-- ARGV[4]  int    longest    1..864000 seconds at most
-- Returns  {failures, seconds}: how often it failed so far and for how long it was put off; {0, 0} if it is not listed
-- Cost     O(log n)          Repeat: not safe; a repeat counts one failure more
local purgatory, failures, entry = KEYS[1], KEYS[2], ARGV[1]
local now, first, longest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

if not redis.call('ZSCORE', purgatory, entry) then
  return {0, 0}
end
local count = redis.call('HINCRBY', failures, entry, 1)
local seconds = math.min(longest, first * 2 ^ math.min(count - 1, 30))
redis.call('ZADD', purgatory, 'XX', string.format('%.17g', now + seconds), entry)
return {count, seconds}
