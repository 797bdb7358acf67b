#!lua
-- use_once: mark a token as used, unless it was before.
-- KEYS[1]  string  mark       the value 1; expires when the token cannot be presented any more
-- ARGV[1]  int     until_ms   unix milliseconds of that instant
-- Returns  1 marked by this call, 0 used before, -1 too late: the mark would not last, so nothing was marked
-- Cost     O(1)               Repeat: not safe; a repeat finds its own mark
local mark, until_ms = KEYS[1], ARGV[1]

if not redis.call('SET', mark, '1', 'NX', 'PXAT', until_ms) then
  return 0
end
return redis.call('EXISTS', mark) == 1 and 1 or -1
