#!lua
-- leave: end a read of the source that gave nothing: free the lock, note absence, wake those who wait.
-- KEYS[1]  string  version    counts purges
-- KEYS[2]  string  recent     what the last read gave
-- KEYS[3]  string  lock
-- ARGV[1]  text    known      the version when the read began
-- ARGV[2]  text    token      which lock is ours; empty: none
-- ARGV[3]  int     absent_ms  how long absence is believed; 0: the read failed, nothing is known
-- ARGV[4]  text    publish    PUBLISH or SPUBLISH; empty: wake nobody
-- ARGV[5]  text    channel
-- ARGV[6]  bytes   frame      a purge
-- Returns  1 noted, 0 refused: a purge came after the read began
-- Cost     O(1) and the listeners of the channel
-- Repeat: safe; it says the same again
-- include _release
local version, recent, lock = KEYS[1], KEYS[2], KEYS[3]
local known, token, absent_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local publish, channel, frame = ARGV[4], ARGV[5], ARGV[6]

release(lock, token)
local current = (redis.call('GET', version) or '') == known
if current and absent_ms > 0 then
  redis.call('SET', recent, '0', 'PX', absent_ms)
end
if publish ~= '' then
  redis.call(publish, channel, frame)
end
return current and 1 or 0
