#!lua
-- smart_acquire: take a smart lock, or say who stands in the way and let a dead holder's lock run out.
-- KEYS[1]  string  lock            JSON {hostname, acquired_at, lock_id}; no expiry until contested
-- ARGV[1]  text    value           what the lock will hold
-- ARGV[2]  text    hostname        the place that never competes with itself; empty: places are not compared
-- ARGV[3]  text    lock_id         of this attempt
-- ARGV[4]  number  now             unix seconds
-- ARGV[5]  int     stale_seconds   1..864000, a lock older than this is stale
-- ARGV[6]  int     ending_seconds  1..864000, how long a stale lock may still live
-- ARGV[7]  int     malformed       -9..-1, the answer for a value that is no lock
-- Returns  1 acquired, -1 held, -2 stale, -3 same place, -4 already ours, or the answer given for a malformed value
-- Cost     O(1)                    Repeat: not safe; where places are not compared, a repeat is refused by the first try
local lock, value, hostname, lock_id, now = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local stale_seconds, ending_seconds, malformed = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local CRASHED_SECONDS = 300

local function shorten(seconds)
  redis.call('EXPIRE', lock, seconds, 'NX')
  redis.call('EXPIRE', lock, seconds, 'LT')
end

local raw = redis.call('GET', lock)
if not raw then
  redis.call('SET', lock, value)
  return 1
end
local decodes, found = pcall(cjson.decode, raw)
if not decodes or type(found) ~= 'table' or type(found.hostname) ~= 'string' or type(found.lock_id) ~= 'string'
  or type(found.acquired_at) ~= 'number' then
  redis.call('EXPIRE', lock, CRASHED_SECONDS, 'NX')
  return malformed
end
if hostname ~= '' and found.hostname == hostname then
  if found.lock_id == lock_id then
    return -4
  end
  shorten(CRASHED_SECONDS)
  return -3
end
if now - found.acquired_at > stale_seconds then
  shorten(ending_seconds)
  return -2
end
return -1
