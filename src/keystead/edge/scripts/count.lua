#!lua
-- count: add one use to a fixed window and say how full it is.
-- KEYS[1]  string  window     counter; its expiry is the end of the window
-- ARGV[1]  int     length_ms  1..604800000, how long a new window lasts
-- Returns  {count, left_ms}: uses so far with this one, and time until the window ends
-- Cost     O(1)               Repeat: not safe; a use whose reply was lost may count twice
local window, length_ms = KEYS[1], tonumber(ARGV[1])

local count = redis.call('INCR', window)
local left_ms = redis.call('PTTL', window)
-- A counter without an expiry would refuse for ever, so one that lost it gets a new window.
if count == 1 or left_ms < 0 then
  redis.call('PEXPIRE', window, length_ms)
  left_ms = length_ms
end
return {count, left_ms}
