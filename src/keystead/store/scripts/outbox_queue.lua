#!lua
-- outbox_queue: queue jobs whose transaction has been committed, each once: the mark and the push are one step.
-- KEYS[1]    zset   delayed   jobs of the queue that are to run later
-- KEYS[2..]  any    places    for each job its mark (string), the list it goes to (list), its state (hash); same tag
-- ARGV[1]    int    sent_ms   how long a mark is remembered
-- ARGV[2]    int    open_ms   how long the state of a job that does not end is kept
-- ARGV[3..]  bytes  jobs      for each job its record, when it is due (0: at once), its name (empty: it has no state),
--                             when it was queued
-- Returns  how many were new; WRONGTYPE at the first whose list or state is something else: those before it are queued
-- Cost     O(jobs log delayed)            Repeat: safe; the marks tell
local delayed, sent_ms, open_ms = KEYS[1], ARGV[1], ARGV[2]

local new = 0
for place = 2, #KEYS, 3 do
  local first = 3 + (place - 2) / 3 * 4
  local mark, list, state = KEYS[place], KEYS[place + 1], KEYS[place + 2]
  local record, due, name, queued_at = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
  if redis.call('EXISTS', mark) == 0 then
    local later = tonumber(due) > 0
    if later then redis.call('ZCARD', delayed) else redis.call('LLEN', list) end  -- before the state says that it is there
    if name ~= '' then
      redis.call('HSET', state, 'name', name, 'status', later and 'delayed' or 'queued', 'queued_at', queued_at)
      redis.call('PEXPIRE', state, open_ms)
    end
    if later then
      redis.call('ZADD', delayed, due, record)
    else
      redis.call('RPUSH', list, record)
    end
    redis.call('SET', mark, '1', 'PX', sent_ms)
    new = new + 1
  end
end
return new
