#!lua
-- leave: delete a marker that still names this connection.
-- KEYS[1]  string  marker      the connection that wrote it last
-- ARGV[1]  text    connection
-- Returns  1 deleted, 0 another connection has it, or nobody
-- Cost     O(1)                Repeat: safe; the second finds nothing
local marker, connection = KEYS[1], ARGV[1]

if redis.call('GET', marker) ~= connection then
  return 0
end
return redis.call('DEL', marker)
