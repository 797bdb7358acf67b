#!lua
-- plain_release: free a plain lock, unless it ended meanwhile and a later holder has it.
-- KEYS[1]  string  lock       the value 1
-- ARGV[1]  int     ends_ms    what taking it answered; a later holder's lock ends later
-- Returns  1 freed, 0 not this holder's any more
-- Cost     O(1)               Repeat: safe; a second run finds nothing left to do
local lock, ends_ms = KEYS[1], tonumber(ARGV[1])

local found_ms = redis.call('PEXPIRETIME', lock)
if found_ms < 0 or found_ms > ends_ms then
  return 0
end
return redis.call('DEL', lock)
