#!lua
-- log: use a sliding log: allowed while each of its windows has room.
-- KEYS[1]  zset  uses     member of a use by its time in seconds
-- ARGV[1]  int   now      microseconds of unix time
-- ARGV[2]  text  windows  "most/microseconds" joined by commas, the longest first
-- ARGV[3]  int   kept_ms  expiry, counted from the newest use
-- ARGV[4]  text  member   names this use; the same again is the same use
-- Returns  {allowed, remaining, retry_ms, reset_ms, start in microseconds}
-- Cost     O(log uses)    Repeat: safe
-- include _log
-- include _answer
local found = {log(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4])}
if found[1] then found[6]() end
return answer(unpack(found, 1, 5))
