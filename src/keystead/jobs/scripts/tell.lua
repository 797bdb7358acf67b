#!lua
-- tell: keep one more progress event of a job, forget the oldest beyond a number, and send it to whoever watches.
-- KEYS[1]  list    events      newest right
-- KEYS[2]  string  count       events ever told
-- ARGV[1]  bytes   event       a JSON object with at least one field
-- ARGV[2]  int     most        1..1000, events kept
-- ARGV[3]  int     lasting_ms  how long both keys live after the last event
-- ARGV[4]  text    publish     PUBLISH or SPUBLISH
-- ARGV[5]  text    channel     gets a JSON array with this one event
-- Returns  {count, subscribers}: how many events there were by now, and who heard this one on the answering server
-- Cost     O(1) and the listeners of the channel
-- Repeat: not safe; the event would be told twice
local events, count = KEYS[1], KEYS[2]
local event, most, lasting_ms, publish, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

redis.call('LLEN', events)  -- a wrong type must show before anything is counted
local ordinal = redis.call('INCR', count)
-- Behind the opening brace, so that the event is not taken apart for it.
local told = string.format('{"ordinal":%.0f,', ordinal) .. string.sub(event, 2)
redis.call('RPUSH', events, told)
redis.call('LTRIM', events, -most, -1)
redis.call('PEXPIRE', events, lasting_ms)
redis.call('PEXPIRE', count, lasting_ms)
return {ordinal, redis.call(publish, channel, '[' .. told .. ']')}
