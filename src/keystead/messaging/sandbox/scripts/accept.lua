#!lua
-- accept: keep messages that a provider takes, with all that follows from them, in one step.
-- KEYS[1]  zset  messages    id by the time of its last status
-- KEYS[2]  zset  recipients  by the time of the last message
-- KEYS[3]  zset  due         webhooks to call
-- KEYS[4]  hash  counts
-- KEYS[5]  zset  taken       id by its number
-- ARGV[1]  text  message_head  the key of a message is this, its id, and the tail
-- ARGV[2]  text  message_tail
-- ARGV[3]  text  inbox_head    likewise for the inbox of a recipient
-- ARGV[4]  text  inbox_tail
-- ARGV[5]  int   held_ms     how long everything is kept
-- ARGV[6]  int   most        1..1000000, messages of an inbox; the oldest beyond go
-- ARGV[7]  text  counted     field of counts
-- ARGV[8]  float  now
-- ARGV[9]  int   number      0..1000, how many messages follow
-- ARGV[10..]  bytes  parts   for each message: id, recipient, itself, last status at; then of webhooks: due at, itself
-- DERIVES  string  message   from an id among the parts
-- DERIVES  zset   inbox      from a recipient among the parts
-- Returns  how many messages were new
-- Cost     O(number * log(n))   Repeat: safe; the same messages are kept once and counted once
local messages, recipients, due, counts, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local held_ms, most, counted, now, number = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])

local new, place = 0, 10
for _ = 1, number do
  local id, recipient = ARGV[place], ARGV[place + 1]
  local inbox = ARGV[3] .. recipient .. ARGV[4]
  local message = ARGV[1] .. id .. ARGV[2]
  redis.call('SET', message, ARGV[place + 2], 'PX', held_ms)
  if redis.call('ZADD', messages, ARGV[place + 3], id) == 1 then
    new = new + 1
    redis.call('ZADD', taken, redis.call('HINCRBY', counts, 'all:numbered', 1), id)
  end
  redis.call('ZADD', recipients, now, recipient)
  redis.call('ZADD', inbox, now, id)
  redis.call('ZREMRANGEBYRANK', inbox, 0, -most - 1)
  redis.call('PEXPIRE', inbox, held_ms)
  place = place + 4
end
for at = place, #ARGV, 2 do
  redis.call('ZADD', due, ARGV[at], ARGV[at + 1])
end
if new > 0 then
  redis.call('HINCRBY', counts, counted, new)
  for _, key in ipairs({messages, recipients, counts, taken}) do
    redis.call('PEXPIRE', key, held_ms)
  end
end
return new
