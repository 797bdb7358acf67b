#!lua
-- replay_chosen: let certain dead letters wait again.
-- KEYS[1]    list   dead     one line of facts, then the member
-- KEYS[2]    zset   due
-- ARGV[1]    float  at       when they are due; one that waits already keeps the earlier time
-- ARGV[2..]  bytes  letters  as they lie among the dead
-- Returns  how many wait again; one that is not there any more, or is no dead letter, is left out
-- Cost     O(letters * dead)      Repeat: safe; those that wait again already are left out
local dead, due, at, replayed = KEYS[1], KEYS[2], ARGV[1], 0

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
for place = 2, #ARGV do
  local letter = ARGV[place]
  local line = string.sub(letter, 1, 1) == '{' and string.find(letter, '\n', 1, true)
  if line and redis.call('LREM', dead, 1, letter) == 1 then
    redis.call('ZADD', due, 'LT', at, string.sub(letter, line + 1))
    replayed = replayed + 1
  end
end
return replayed
