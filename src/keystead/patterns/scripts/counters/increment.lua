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

for _, key in ipairs({total, month}) do  -- both must show that they can be added to before either is
  local now = tonumber(redis.call('GET', key) or '0')
  assert(now and now + amount < 2^63, 'a count is not a number, or too big')
end
if number < tonumber(redis.call('GET', earliest) or '1e9') then
  redis.call('SET', earliest, number)
end
return {redis.call('INCRBY', total, amount), redis.call('INCRBY', month, amount)}
