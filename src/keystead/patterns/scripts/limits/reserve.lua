#!lua
-- reserve: take the next place in a row of uses that lie a gap apart, unless it is too far ahead.
-- KEYS[1]  string  row         one time in seconds
-- ARGV[1]  int     now         microseconds of unix time
-- ARGV[2]  int     gap         microseconds between two starts
-- ARGV[3]  int     lead        microseconds that this use adds to its start
-- ARGV[4]  int     most_ahead  microseconds from now to the start, lead included, that are accepted
-- ARGV[5]  int     mode        0..2, what the key holds: 0 the next free start, 1 the last start, 2 the end of a rate
-- Returns  {allowed, remaining, retry_ms, reset_ms, start in microseconds}
-- Cost     O(1)                Repeat: not safe; a place whose reply was lost stays taken
-- include _timeline
-- include _answer
local found = {timeline(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5])}
if found[1] then found[6]() end
return answer(unpack(found, 1, 5))
