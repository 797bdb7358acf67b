-- Members with their scores, lowest first, moved from one sorted set to another by their scores.
local function move_due(due, purgatory, now, most)
  local found = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  for place = 1, #found, 2 do
    redis.call('ZADD', purgatory, found[place + 1], found[place])
    redis.call('ZREM', due, found[place])
  end
  return found
end

local function show_life(worker, alive_ms)
  if #KEYS > 2 then
    redis.call('SADD', KEYS[4], worker)
    redis.call('SET', KEYS[3], '1', 'PX', alive_ms)
  end
end
