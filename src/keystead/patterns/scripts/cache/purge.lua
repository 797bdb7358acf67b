#!lua
-- purge: forget a value everywhere: raise the version, delete what the server has, tell every instance.
-- KEYS[1]  string  version     counts purges
-- KEYS[2]  string  recent      what the last read gave
-- KEYS[3]  string  value       the version's key again where the family has no value on the server
-- ARGV[1]  int     now_us      the caller's time
-- ARGV[2]  int     version_ms  how long a read of the source may take
-- ARGV[3]  text    publish     PUBLISH or SPUBLISH; empty: the family has no channel
-- ARGV[4]  text    channel
-- ARGV[5]  bytes   frame
-- Returns  1 if the server had a value, else 0
-- Cost     O(1) and the listeners of the channel
-- Repeat: safe; a second purge forgets no more than the first
local version, recent, value = KEYS[1], KEYS[2], KEYS[3]
local now_us, version_ms = tonumber(ARGV[1]), ARGV[2]
local publish, channel, frame = ARGV[3], ARGV[4], ARGV[5]

local before = tonumber(redis.call('GET', version) or '0')
local had = 0
if value ~= version then
  had = redis.call('DEL', value)
end
redis.call('SET', version, string.format('%.0f', math.max(before + 1, now_us)), 'PX', version_ms)
redis.call('DEL', recent)
if publish ~= '' then
  redis.call(publish, channel, frame)
end
return had
