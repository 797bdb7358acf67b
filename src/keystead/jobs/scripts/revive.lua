#!lua
-- revive: take dead letters away and queue what they hold, each with all its tries again. All or nothing.
-- KEYS[1]   list   dead
-- KEYS[2]   list   queue
-- KEYS[3]   zset   cancelled  a wish to call one off, from before, does not count any more
-- KEYS[4..] any    own        three for each letter: state, batch and unique key of its job
-- ARGV[1]   int    open_ms    how long the state of a job that does not end is kept
-- ARGV[2]   int    unique_ms  how long a unique key holds at most
-- ARGV[3..] bytes  letters    eight for each: place where it was seen, letter, item to queue, uid, name of a job whose
--                             state is kept (empty: it is not), queued_at, 1 if in a batch, 1 if it has a unique key
-- Returns  how many were queued; the others were no longer dead
-- Cost     O(dead + letters)    Repeat: safe; a repeat finds none of them among the dead
-- include _letters
local dead, queue, cancelled, open_ms, unique_ms = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
redis.call('ZCARD', cancelled)
local places, letters = {}, {}
for at = 3, #ARGV, 8 do
  places[#places + 1], letters[#letters + 1] = ARGV[at], ARGV[at + 1]
end
local was_there, count = without(dead, places, letters)
for number in ipairs(letters) do
  if was_there[number] then
    local at, own = 3 + (number - 1) * 8, 4 + (number - 1) * 3
    local uid, name = ARGV[at + 3], ARGV[at + 4]
    local job, batch, unique = KEYS[own], KEYS[own + 1], KEYS[own + 2]
    redis.call('RPUSH', queue, ARGV[at + 2])
    if uid ~= '' then redis.call('ZREM', cancelled, uid) end
    if name ~= '' then
      redis.call('DEL', job)
      redis.call('HSET', job, 'name', name, 'status', 'queued', 'queued_at', ARGV[at + 5])
      redis.call('PEXPIRE', job, open_ms)
    end
    if ARGV[at + 6] == '1' and tonumber(redis.call('HGET', batch, 'left') or '0') > 0 then
      redis.call('HINCRBY', batch, 'left', 1)
      redis.call('HINCRBY', batch, 'failed', -1)
    end
    if ARGV[at + 7] == '1' then redis.call('SET', unique, uid, 'NX', 'PX', unique_ms) end
  end
end
return count
