#!lua
-- ask: take a leased lock when it is this waiter's turn, else stand in the queue.
-- KEYS[1]    string  lock         JSON of the holder
-- KEYS[2]    zset    waiting      how each waiter's JSON begins, by order of arrival
-- KEYS[3..]  string  fence        counter of holders, where holders are numbered
-- ARGV[1]    text    me           how this waiter's JSON begins; holds a uid, so it is like no other
-- ARGV[2]    text    acquired_at  unix seconds, as it is to stand in the JSON
-- ARGV[3]    int     lease_ms     1..864000000
-- ARGV[4]    int     handover_ms  1..864000000, how long a lock that was handed over waits for its new holder
-- ARGV[5]    text    verb         how to publish
-- ARGV[6]    text    turn         what the name of a waiter's channel begins with
-- ARGV[7]    int     kept_ms      1..864000000, how long the queue outlives its last question
-- DERIVES    channel turn         ARGV[6] and the uid of a waiter in the queue
-- Returns    {1, number} when taken (0: not numbered), else {0, left_ms, place}: time of the holder, place in the queue
-- Cost       O(log n), n waiters; O(16 log n) after many died  Repeat: safe
local lock, waiting, fence = KEYS[1], KEYS[2], #KEYS > 2 and KEYS[3] or nil
local me, acquired_at, lease_ms, handover_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local verb, turn, kept_ms = ARGV[5], ARGV[6], ARGV[7]
-- include _hand_over

local found = redis.call('GET', lock)
if found and string.sub(found, 1, #me) == me then
  redis.call('PEXPIRE', lock, lease_ms)
  redis.call('ZREM', waiting, me)
  return {1, tonumber(string.match(found, '"fence":(%d+)') or 0)}
end
local last = redis.call('ZRANGE', waiting, -1, -1, 'WITHSCORES')
redis.call('ZADD', waiting, 'NX', (tonumber(last[2]) or 0) + 1, me)
redis.call('PEXPIRE', waiting, kept_ms)
if not found then
  local holder, number = hand_over(me, lease_ms)
  if holder == me then
    return {1, number}
  end
elseif not string.find(found, ',"contested":true}', 1, true) then
  -- The holder's quick way to free it compares the whole value, so this makes it look at the queue.
  redis.call('SET', lock, string.sub(found, 1, -2) .. ',"contested":true}', 'KEEPTTL')
end
return {0, redis.call('PTTL', lock), redis.call('ZRANK', waiting, me) or 0}
