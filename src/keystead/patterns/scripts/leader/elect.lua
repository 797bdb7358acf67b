#!lua
-- elect: become the leader if there is none, or learn how long the present one has.
-- KEYS[1]  string  leader     <instance>:<epoch>, expires unless renewed
-- KEYS[2]  string  epoch      counter of leaders
-- ARGV[1]  text    instance   who asks
-- ARGV[2]  int     lease_ms   1..864000000
-- Returns  {1, epoch} when leading, else {0, left_ms}: how long the present leader has at most
-- Cost     O(1)               Repeat: safe; a leader that asks again keeps its epoch and gets its whole time
local leader, epoch, instance, lease_ms = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local found = redis.call('GET', leader)
if not found then
  local number = redis.call('INCR', epoch)
  redis.call('SET', leader, instance .. ':' .. number, 'PX', lease_ms)
  return {1, number}
end
local number = string.match(found, ':(%d+)$')
if number and found == instance .. ':' .. number then
  redis.call('PEXPIRE', leader, lease_ms)
  return {1, tonumber(number)}
end
return {0, redis.call('PTTL', leader)}
