#!lua
-- log_list: use a sliding log that is a list of times, oldest first: allowed while its window has room.
-- KEYS[1]  list    uses            times in seconds, about in order
-- ARGV[1]  int     now             microseconds of unix time
-- ARGV[2]  int     most            1..100000
-- ARGV[3]  int     window          microseconds
-- ARGV[4]  int     counts_refused  0..1
-- Returns  {allowed, remaining, retry_ms, reset_ms, start in microseconds}
-- Cost     O(uses that are over)   Repeat: not safe; a use whose reply was lost may count twice
-- include _answer
local uses, now, most, window, counts_refused = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local oldest = tonumber(redis.call('LINDEX', uses, 0))
while oldest and oldest * 1e6 <= now - window do
  redis.call('LPOP', uses)
  oldest = tonumber(redis.call('LINDEX', uses, 0))
end
local used = redis.call('LLEN', uses)
local fits = used < most
if fits or counts_refused == '1' then
  redis.call('RPUSH', uses, (string.gsub(string.format('%.6f', now / 1e6), '%.?0+$', '')))
  redis.call('LTRIM', uses, -most, -1)
  redis.call('PEXPIRE', uses, math.ceil(window / 1e3))
end
local first = tonumber(redis.call('LINDEX', uses, -most)) or now / 1e6
return answer(fits, math.max(0, most - used - 1), (first * 1e6 + window - now) / 1e3, window / 1e3, now)
