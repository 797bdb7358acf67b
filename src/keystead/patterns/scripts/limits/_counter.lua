-- A count that ends with its key.
local function counter(key, now, most, length_ms, cost, mode)
  local used, left_ms = tonumber(redis.call('GET', key) or 0), redis.call('PTTL', key)
  local fits = used + cost <= tonumber(most)
  if left_ms == -1 then redis.call('PEXPIRE', key, length_ms) end
  local ends_ms = left_ms >= 0 and left_ms or tonumber(length_ms)
  return fits, math.max(0, most - used - (fits and cost or 0)), ends_ms, ends_ms, now, function()
    redis.call('INCRBY', key, cost)
    if left_ms < 0 or mode % 2 == 1 then redis.call('PEXPIRE', key, length_ms) end
  end
end
