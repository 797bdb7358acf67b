#!lua
-- increment: add to the number of a day, or count apart what comes when the day was rotated.
-- KEYS[1]  string  earliest  first day that may still be here
-- KEYS[2]  hash    rotation  rotated_to: the first day that was not rotated yet
-- KEYS[3]  hash    late      day by how much came too late
-- KEYS[4]  string  number
-- ARGV[1]  int     day       0..999999
-- ARGV[2]  int     amount    1..1000000000000
-- Returns  the day's number; -1 when it came too late
-- Cost     O(1)              Repeat: not safe; a repeat counts again
local earliest, rotation, late, number, day, amount = KEYS[1], KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[1]), ARGV[2]

if day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1') then
  redis.call('HINCRBY', late, day, amount)
  return -1
end
if day < tonumber(redis.call('GET', earliest) or '1e9') then
  redis.call('SET', earliest, day)
end
return redis.call('INCRBY', number, amount)
