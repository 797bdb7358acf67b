#!lua
-- claim: return members that are due and put each off to a later time, in one step; nobody else gets them till then.
-- KEYS[1]  zset   due
-- ARGV[1]  float  now      unix seconds
-- ARGV[2]  float  until    when they are due again unless removed
-- ARGV[3]  int    most     1..5000
-- Returns  pairs: member, the time it was due, earliest first
-- Cost     O(most * log(n))    Repeat: not safe; after a lost reply they are due again at the later time
local due, now, later, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

local found = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
for place = 1, #found, 2 do
  redis.call('ZADD', due, later, found[place])
end
return found
