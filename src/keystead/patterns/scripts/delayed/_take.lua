-- Of members with their scores those that may be taken together: one on its last try after crashes comes alone.
local function apart(found, poison)
  if #found > 2 and redis.call('HLEN', poison) > 0 then
    for place = 1, #found, 2 do
      if redis.call('HEXISTS', poison, 'crashed:' .. redis.sha1hex(found[place])) == 1 then
        local first = {}
        for at = 1, math.max(2, place - 1) do first[at] = found[at] end
        return first
      end
    end
  end
  return found
end

-- Members with their scores, lowest first, moved from one sorted set to another by their scores.
local function move_due(due, purgatory, poison, now, most)
  local found = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  found = apart(found, poison)
  for place = 1, #found, 2 do
    redis.call('ZADD', purgatory, found[place + 1], found[place])
    redis.call('ZREM', due, found[place])
  end
  return found
end

local function show_life(worker, alive_ms)
  if #KEYS > 3 then
    redis.call('SADD', KEYS[5], worker)
    redis.call('SET', KEYS[4], '1', 'PX', alive_ms)
  end
end
