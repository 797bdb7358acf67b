#!lua
-- beat: renew the keepalive of an item that is still held.
-- KEYS[1]  string  keepalive
-- ARGV[1]  text    token
-- ARGV[2]  int     lease_ms    1000..86400000
-- Returns  1 when renewed, 0 when the item is not the caller's any more
-- Cost     O(1)   Repeat: safe
local keepalive, token, lease_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', keepalive) ~= token then return 0 end
return redis.call('PEXPIRE', keepalive, lease_ms)
