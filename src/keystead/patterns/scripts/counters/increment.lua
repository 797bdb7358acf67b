#!lua
-- increment: add to a total and to the count of a month.
-- KEYS[1]  string  total
-- KEYS[2]  string  month
-- KEYS[3]  string  earliest  first month that may still be here
-- ARGV[1]  int     number    0..99999, the month
-- ARGV[2]  int     amount    1..1000000000000
-- Returns  {total, count of the month}
-- Cost     O(1)              Repeat: not safe; a repeat counts again
local total, month, earliest, number, amount = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), ARGV[2]

if number < tonumber(redis.call('GET', earliest) or '1e9') then
  redis.call('SET', earliest, number)
end
return {redis.call('INCRBY', total, amount), redis.call('INCRBY', month, amount)}
