#!lua
-- begin: before the source is read: look once more for the value, note the version, take the cache lock.
-- KEYS[1]  string  version     counts purges; missing when there was none for a while
-- KEYS[2]  string  recent      what the last read of the source gave: 0 absent, else the stamp of a fill just sent
-- KEYS[3]  string  lock        the value 1; the value's own key where the marker lies in it
-- KEYS[4]  string  value       the version's key again where the family has no value on the server
-- ARGV[1]  int     lock_ms     0..86400000, 0: the family has no lock
-- ARGV[2]  int     stale_ms    a value with no more time left than this is too old; -1: no value on the server
-- ARGV[3]  int     version_ms  how long a version must be kept while someone reads the source
-- ARGV[4]  text    seen        stamp of the last fill that reached the caller; *: it hears none
-- ARGV[5]  int     force       1: read the source whoever holds the lock
-- Returns  {state, version, token, value, left_ms}: state 0 value, 1 read the source, 2 another reads it, 3 absent
-- Cost     O(1)                Repeat: not safe; a repeat finds the lock of the first try
local version, recent, lock, value = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lock_ms, stale_ms, version_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local seen, force = ARGV[4], ARGV[5] == '1'

local marked = lock == value
local known = redis.call('GET', version) or ''
if stale_ms >= 0 then
  local found, left = redis.call('GET', value), redis.call('PTTL', value)
  if found and not (marked and found == '1') and (left < 0 or left > stale_ms) then
    return {0, known, '', found, left}
  end
end
local last = redis.call('GET', recent)
if last == '0' and not force then
  return {3, known, '', '', redis.call('PTTL', recent)}
end
if last and last ~= '0' and last ~= seen and seen ~= '*' and not force then
  return {2, known, '', '', redis.call('PTTL', recent)}
end
local token = ''
if lock_ms > 0 then
  if redis.call('SET', lock, '1', 'NX', 'PX', lock_ms) then
    token = string.format('%.0f', redis.call('PEXPIRETIME', lock))
  elseif not force and not (marked and redis.call('GET', lock) ~= '1') then
    return {2, known, '', '', redis.call('PTTL', lock)}
  end
end
if known ~= '' then
  redis.call('PEXPIRE', version, version_ms)
end
return {1, known, token, '', 0}
