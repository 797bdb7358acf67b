-- Different values; one that is known already is free.
local function distinct(key, now, most, length_ms, mode, value)
  local known, left = redis.call('SISMEMBER', key, value) == 1, most - redis.call('SCARD', key)
  local left_ms = redis.call('PTTL', key)
  if left_ms == -1 then redis.call('PEXPIRE', key, length_ms) end
  local ends_ms = left_ms >= 0 and left_ms or tonumber(length_ms)
  return known or left > 0, math.max(0, left - (known and 0 or 1)), ends_ms, ends_ms, now, function()
    redis.call('SADD', key, value)
    if left_ms < 0 or mode % 2 == 1 then redis.call('PEXPIRE', key, length_ms) end
  end
end
