#!lua
-- distinct: use a limit on different values; one that is known already is free.
-- KEYS[1]  set   values     those that were used
-- ARGV[1]  int   now        microseconds of unix time
-- ARGV[2]  int   most       1..100000
-- ARGV[3]  int   length_ms  how long the set lives
-- ARGV[4]  int   mode       0..1, 1 when each use renews it
-- ARGV[5]  text  value
-- Returns  {allowed, remaining, retry_ms, reset_ms, start in microseconds}
-- Cost     O(1)             Repeat: safe
-- include _distinct
-- include _answer
local found = {distinct(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5])}
if found[1] then
  found[6]()
elseif ARGV[4] == '1' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  found[3], found[4] = ARGV[3], ARGV[3]
end
return answer(unpack(found, 1, 5))
