#!lua
-- add: put members into the set of a day, or count them apart when the day was rotated.
-- KEYS[1]    string  earliest  first day that may still be here
-- KEYS[2]    hash    rotation  rotated_to: the first day that was not rotated yet
-- KEYS[3]    hash    late      day by how many came too late
-- KEYS[4]    set     members
-- ARGV[1]    int     day       0..999999
-- ARGV[2..]  text    added
-- Returns  how many were new; -1 when they came too late
-- Cost     O(added)            Repeat: not safe; late members would count again
local earliest, rotation, late, members, day = KEYS[1], KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[1])

if day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1') then
  redis.call('HINCRBY', late, day, #ARGV - 1)
  return -1
end
if day < tonumber(redis.call('GET', earliest) or '1e9') then
  redis.call('SET', earliest, day)
end
local new = 0
for place = 2, #ARGV do
  new = new + redis.call('SADD', members, ARGV[place])
end
return new
