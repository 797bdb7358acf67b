#!lua
-- join: put a member among those who have not come back yet, for every period, or count it apart when that is over.
-- KEYS[1]    hash    rotation  rotated_to: the first day that was not rotated yet
-- KEYS[2]    hash    late      day by how many joined too late
-- KEYS[3..]  any     periods   three each: earliest of those who have not come back, their set, and of those who have
-- ARGV[1]    int     day       0..999999
-- ARGV[2]    text    member
-- Returns  1 when the member is new, 0 when the cohort knew it, -1 when the cohort was rotated
-- Cost     O(periods)          Repeat: not safe; a late member would count again
local rotation, late, day, member = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2]

if day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1') then
  redis.call('HINCRBY', late, day, 1)
  return -1
end
local new = {}
for place = 3, #KEYS, 3 do
  local known = redis.call('SISMEMBER', KEYS[place + 1], member) + redis.call('SISMEMBER', KEYS[place + 2], member)
  if known == 0 then
    new[#new + 1] = place + 1
  end
end
for place = 3, #KEYS, 3 do
  if day < tonumber(redis.call('GET', KEYS[place]) or '1e9') then
    redis.call('SET', KEYS[place], day)
  end
end
for _, place in ipairs(new) do
  redis.call('SADD', KEYS[place], member)
end
return #new > 0 and 1 or 0
