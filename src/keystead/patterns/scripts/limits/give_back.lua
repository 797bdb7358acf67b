#!lua
-- give_back: take uses out of a window again, because they turned out not to count.
-- KEYS[1]  string  window  counter; keeps its expiry
-- ARGV[1]  int     cost    1..1000000000
-- Returns  how many uses were given back; 0 when the window holds none
-- Cost     O(1)            Repeat: not safe; a repeat gives back other uses
local window, cost = KEYS[1], tonumber(ARGV[1])

local given = math.min(cost, tonumber(redis.call('GET', window)) or 0)
if given > 0 then
  redis.call('DECRBY', window, given)
end
return math.max(given, 0)
