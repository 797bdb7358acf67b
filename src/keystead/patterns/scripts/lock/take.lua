#!lua
-- take: take a leased lock that numbers its holders, without waiting.
-- KEYS[1]  string  lock         JSON of the holder
-- KEYS[2]  string  fence        counter of holders
-- ARGV[1]  text    me           how the holder's JSON begins; holds a uid, so it is like no other
-- ARGV[2]  text    acquired_at  unix seconds, as it is to stand in the JSON
-- ARGV[3]  int     lease_ms     1..864000000
-- Returns  the number of this holder, or 0 when the lock is held
-- Cost     O(1)                 Repeat: safe; a second run finds its own lock and answers the same
local lock, fence, me, acquired_at, lease_ms = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local found = redis.call('GET', lock)
if found then
  if string.sub(found, 1, #me) ~= me then
    return 0
  end
  return tonumber(string.match(found, '"fence":(%d+)'))
end
local number = redis.call('INCR', fence)
redis.call('SET', lock, me .. ',"acquired_at":' .. acquired_at .. ',"fence":' .. number .. '}', 'PX', lease_ms)
return number
