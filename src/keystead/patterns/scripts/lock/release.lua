#!lua
-- release: leave the queue of a leased lock, and free the lock if it is this holder's: to the next in turn, if any.
-- KEYS[1]    string  lock         JSON of the holder
-- KEYS[2]    zset    waiting      how each waiter's JSON begins, by order of arrival
-- KEYS[3..]  string  fence        counter of holders, where holders are numbered
-- ARGV[1]    text    me           how the holder's JSON begins
-- ARGV[2]    text    acquired_at  unix seconds, as the next holder's JSON is to have it
-- ARGV[3]    int     handover_ms  1..864000000, how long the lock waits for its new holder
-- ARGV[4]    text    verb         how to publish
-- ARGV[5]    text    turn         what the name of a waiter's channel begins with
-- DERIVES    channel turn         ARGV[5] and the uid of a waiter in the queue
-- Returns    1 freed, 0 not this holder's any more
-- Cost       O(log n), n waiters; O(16 log n) after many died  Repeat: safe
local lock, waiting, fence = KEYS[1], KEYS[2], #KEYS > 2 and KEYS[3] or nil
local me, acquired_at, handover_ms, verb, turn = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- include _hand_over

redis.call('ZREM', waiting, me)
local found = redis.call('GET', lock)
if not found or string.sub(found, 1, #me) ~= me then
  return 0
end
if not hand_over() then
  redis.call('DEL', lock)
end
return 1
