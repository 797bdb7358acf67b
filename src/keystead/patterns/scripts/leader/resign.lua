#!lua
-- resign: stop leading and tell those who wait to lead.
-- KEYS[1]  string  leader     <instance>:<epoch>
-- ARGV[1]  text    value      the whole value, as this leader knows it
-- ARGV[2]  text    verb       how to publish
-- ARGV[3]  text    vacant     channel that followers listen to
-- Returns  1 resigned, 0 not the leader any more
-- Cost     O(1) and the listeners    Repeat: safe
local leader, value, verb, vacant = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if redis.call('GET', leader) ~= value then
  return 0
end
redis.call('DEL', leader)
redis.call(verb, vacant, value)
return 1
