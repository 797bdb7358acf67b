#!lua
-- active: move a member among those who came back, for the periods that have passed.
-- KEYS[1]    hash    rotation  rotated_to: the first day that was not rotated yet
-- KEYS[2..]  any     periods   three each: earliest of those who came back, the set of those who did not, and their set
-- ARGV[1]    int     day       0..999999, on which the member joined
-- ARGV[2]    text    member
-- Returns  for how many periods it is new; -1 when the cohort was rotated
-- Cost     O(periods)          Repeat: safe
local rotation, day, member, moves = KEYS[1], tonumber(ARGV[1]), ARGV[2], {}

if day < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1') then
  return -1
end
for place = 2, #KEYS, 3 do
  redis.call('SCARD', KEYS[place + 2])  -- a wrong type must show before anything is moved
  if redis.call('SISMEMBER', KEYS[place + 1], member) == 1 then
    moves[#moves + 1] = place
  end
end
for _, place in ipairs(moves) do
  if day < tonumber(redis.call('GET', KEYS[place]) or '1e9') then
    redis.call('SET', KEYS[place], day)
  end
  redis.call('SMOVE', KEYS[place + 1], KEYS[place + 2], member)
end
return #moves
