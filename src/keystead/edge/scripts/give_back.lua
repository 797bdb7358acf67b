#!lua
-- give_back: take one use out of a window again, because it turned out to be a good one.
-- KEYS[1]  string  window  counter; keeps its expiry
-- Returns  1 when a use was given back, 0 when the window holds none
-- Cost     O(1)            Repeat: not safe; a repeat gives back another use
local window = KEYS[1]

local count = tonumber(redis.call('GET', window) or '0')
local given = 0
if count and count > 0 then
  redis.call('DECR', window)
  given = 1
end
return given
