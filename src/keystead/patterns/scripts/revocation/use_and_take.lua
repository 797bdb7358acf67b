#!lua
-- use_and_take: mark a token as used, and take what was kept for whoever would use it.
-- KEYS[1]  string  mark       the value 1; expires when the token cannot be presented any more
-- KEYS[2]  hash    kept       belongs to the token; removed
-- ARGV[1]  int     until_ms   unix milliseconds of that instant
-- Returns  {1, name, value...} taken (no fields: nothing was kept), {0} used before, {-1} too late
-- Cost     O(fields)          Repeat: not safe; a repeat finds its own mark
local mark, kept, until_ms = KEYS[1], KEYS[2], ARGV[1]

if not redis.call('SET', mark, '1', 'NX', 'PXAT', until_ms) then
  return {0}
end
if redis.call('EXISTS', mark) == 0 then
  return {-1}
end
local fields = redis.call('HGETALL', kept)
redis.call('DEL', kept)
return {1, unpack(fields)}
