#!lua
-- revoke: mark tokens as revoked; a mark that is there already is never shortened.
-- KEYS[1..]  string  marks      the value 1 each; expire when their token cannot be presented any more
-- ARGV[1]    int     until_ms   unix milliseconds of that instant
-- Returns    how many were not marked before
-- Cost       O(n), n marks      Repeat: safe; only the count differs
local until_ms, fresh = ARGV[1], 0

for place = 1, #KEYS do
  local mark = KEYS[place]
  if redis.call('SET', mark, '1', 'NX', 'PXAT', until_ms) then
    fresh = fresh + redis.call('EXISTS', mark)
  else
    redis.call('PEXPIREAT', mark, until_ms, 'GT')
  end
end
return fresh
