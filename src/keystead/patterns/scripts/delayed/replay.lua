#!lua
-- replay: let the oldest dead letters wait again.
-- KEYS[1]  list   dead     one line of facts, then the member
-- KEYS[2]  zset   due
-- ARGV[1]  int    most     1..5000
-- ARGV[2]  float  at       when they are due; one that waits already keeps the earlier time
-- Returns  how many wait again; an element that is no dead letter goes to the end of the dead letters
-- Cost     O(most * log(n))    Repeat: not safe; a repeat returns others
local dead, due, most, at, replayed = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2], 0

redis.call('ZCARD', due)  -- a wrong type must show before anything is removed
local letters = redis.call('LRANGE', dead, 0, most - 1)
redis.call('LTRIM', dead, #letters, -1)
for _, letter in ipairs(letters) do
  local line = string.sub(letter, 1, 1) == '{' and string.find(letter, '\n', 1, true)
  if line then
    redis.call('ZADD', due, 'LT', at, string.sub(letter, line + 1))
    replayed = replayed + 1
  else
    redis.call('RPUSH', dead, letter)
  end
end
return replayed
