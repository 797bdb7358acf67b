#!lua
-- fill: keep and publish what was read from the source, unless it was purged since the read began; free the lock.
-- KEYS[1]  string  version    counts purges
-- KEYS[2]  string  recent     what the last read gave
-- KEYS[3]  string  lock
-- KEYS[4]  string  value      the version's key again where the family has no value on the server
-- ARGV[1]  text    known      the version when the read began
-- ARGV[2]  text    token      which lock is ours; empty: none
-- ARGV[3]  int     value_ms   how long the value lives; 0: no value on the server
-- ARGV[4]  int     recent_ms  how long the message may be on its way; 0: nobody has to wait for it
-- ARGV[5]  bytes   raw        the value
-- ARGV[6]  text    stamp      of this fill
-- ARGV[7]  text    publish    PUBLISH or SPUBLISH; empty: the family has no channel
-- ARGV[8]  text    channel
-- ARGV[9]  bytes   frame
-- Returns  1 kept, 0 refused: a purge came after the read began
-- Cost     O(1) and the listeners of the channel
-- Repeat: safe; the same value is sent again, or refused
-- include _release
local version, recent, lock, value = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local known, token, value_ms, recent_ms, raw = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local stamp, publish, channel, frame = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

release(lock, token)
if (redis.call('GET', version) or '') ~= known then
  return 0
end
if value_ms > 0 then
  redis.call('SET', value, raw, 'PX', value_ms)
end
if recent_ms > 0 then
  redis.call('SET', recent, stamp, 'PX', recent_ms)
else
  redis.call('DEL', recent)
end
if publish ~= '' then
  redis.call(publish, channel, frame)
end
return 1
