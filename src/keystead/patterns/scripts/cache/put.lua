#!lua
-- put: replace a value everywhere: raise the version, write what the server has, send it to every instance.
-- KEYS[1]  string  version     counts purges and replacements
-- KEYS[2]  string  recent      what the last read gave
-- KEYS[3]  string  value       the version's key again where the family has no value on the server
-- ARGV[1]  int     now_us      the caller's time
-- ARGV[2]  int     version_ms  how long a read of the source may take
-- ARGV[3]  int     value_ms    how long the value lives
-- ARGV[4]  bytes   raw         the value
-- ARGV[5]  text    publish     PUBLISH or SPUBLISH; empty: the family has no channel
-- ARGV[6]  text    channel
-- ARGV[7]  bytes   frame
-- Returns  nothing
-- Cost     O(1) and the listeners of the channel
-- Repeat: not safe; a late repeat would replace what others put meanwhile
local version, recent, value = KEYS[1], KEYS[2], KEYS[3]
local now_us, version_ms, value_ms, raw = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local publish, channel, frame = ARGV[5], ARGV[6], ARGV[7]

local before = tonumber(redis.call('GET', version) or '0')
redis.call('SET', version, string.format('%.0f', math.max(before + 1, now_us)), 'PX', version_ms)
redis.call('DEL', recent)
if value ~= version then
  redis.call('SET', value, raw, 'PX', value_ms)
end
if publish ~= '' then
  redis.call(publish, channel, frame)
end
return false
