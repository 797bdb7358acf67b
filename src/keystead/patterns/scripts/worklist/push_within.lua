#!lua
-- push_within: append values unless the list would grow beyond a limit; all or none.
-- KEYS[1]    list   queue
-- ARGV[1]    int    limit   most elements allowed
-- ARGV[2..]  bytes  values
-- Returns  the new length, or 0 when there is no room
-- Cost     O(values)      Repeat: not safe; a repeat appends again
-- include _push
-- include _arguments
local queue, limit, values = KEYS[1], tonumber(ARGV[1]), arguments_from(2)

if redis.call('LLEN', queue) + #values > limit then return 0 end
push_all('RPUSH', queue, values)
return redis.call('LLEN', queue)
