#!lua
-- active: move a member among those who came back, for the periods that have passed.
-- KEYS[1]    hash    rotation  rotated_to: the first day that was not rotated yet
-- KEYS[2..]  any     periods   three each: earliest of those who came back, the set of those who did not, and their set
-- ARGV[1]    int     day       0..999999, on which the member joined
-- ARGV[2]    text    member
-- Returns  for how many periods it is new; -1 when the cohort was rotated
-- Cost     O(periods)          Repeat: safe
local rotation, day, member, moved = KEYS[1], tonumber(ARGV[1]), ARGV[2], 0

if day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1') then
  return -1
end
for place = 2, #KEYS, 3 do
  local earliest, waiting, back = KEYS[place], KEYS[place + 1], KEYS[place + 2]
  if redis.call('SISMEMBER', waiting, member) == 1 then
    if day < tonumber(redis.call('GET', earliest) or '1e9') then
      redis.call('SET', earliest, day)
    end
    moved = moved + redis.call('SMOVE', waiting, back, member)
  end
end
return moved
