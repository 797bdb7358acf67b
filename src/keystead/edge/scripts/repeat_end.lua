#!lua
-- repeat_end: keep the answer of a request that ran, prolong its claim, or let the key go.
-- KEYS[1]  hash  entry       request, and claim while it runs, answer afterwards
-- ARGV[1]  text  claim       who runs it
-- ARGV[2]  int   held_ms     0..604800000, how long to keep it from now; 0 lets the key go
-- ARGV[3]  bytes answer      empty while it still runs
-- Returns  1 when done, 0 when the claim is not the caller's any more
-- Cost     O(1)             Repeat: safe; a repeat after the answer was kept returns 0
local entry, claim, held_ms, answer = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
if redis.call('HGET', entry, 'claim') ~= claim then return 0 end

if held_ms == 0 then
  redis.call('DEL', entry)
  return 1
end
if answer ~= '' then
  redis.call('HSET', entry, 'answer', answer)
  redis.call('HDEL', entry, 'claim')
end
redis.call('PEXPIRE', entry, held_ms)
return 1
