#!lua
-- bury_late: move late counts that do not decode to the dead letters.
-- KEYS[1]    list   late
-- KEYS[2]    list   dead    newest right
-- ARGV[1..]  bytes  pairs   an entry, then its facts (error and time, JSON without the opening brace); and so on
-- Returns  how many were moved; the others were not there any more
-- Cost     O(entries * late); entries stand near the head
-- Repeat: safe; what has been moved is not there
local late, dead, moved = KEYS[1], KEYS[2], 0

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
for place = 1, #ARGV, 2 do
  if redis.call('LREM', late, 1, ARGV[place]) == 1 then
    redis.call('RPUSH', dead, '{"attempts":0,' .. ARGV[place + 1] .. '\n' .. ARGV[place])
    moved = moved + 1
  end
end
return moved
