#!lua
-- tenants_count: add to what tenants asked for, or got, in one minute.
-- KEYS[1]  zset  minute      tenant by the sum of its costs; !all is everybody's
-- ARGV[1]  int   kept_ms     how long the minute is kept after the last count
-- ARGV[2..] text of_each     tenant, cost, of each in turn
-- Returns  number of tenants counted
-- Cost     O(k log n)   Repeat: not safe; a repeat counts twice
local minute, kept_ms, call, all = KEYS[1], ARGV[1], redis.call, 0
for i = 2, #ARGV, 2 do
  call('ZINCRBY', minute, ARGV[i + 1], ARGV[i])
  all = all + ARGV[i + 1]
end
call('ZINCRBY', minute, all, '!all')
call('PEXPIRE', minute, kept_ms)
return (#ARGV - 1) / 2
