#!lua
-- increment: add to a counter and say what it holds now.
-- KEYS[1]  string  counter  holds an integer
-- ARGV[1]  int     step     1..1000000
-- Returns  the new value of the counter
-- Cost     O(1)             Repeat: not safe; a repeated call counts twice
local counter, step = KEYS[1], tonumber(ARGV[1])
return redis.call('INCRBY', counter, step)
