#!lua
-- discard: delete a value that does not decode, unless it was replaced meanwhile.
-- KEYS[1]  string  value
-- ARGV[1]  bytes   raw    what did not decode
-- Returns  1 deleted, 0 it is another value now
-- Cost     O(1)           Repeat: safe; the second finds nothing
local value, raw = KEYS[1], ARGV[1]

if redis.call('GET', value) ~= raw then
  return 0
end
return redis.call('DEL', value)
