-- Past uses by time. windows: "most/microseconds" joined by commas, the longest first. A member that is there is the same use.
local function log(key, now, windows, kept_ms, member)
  local left, wait, longest, score = math.huge, 0, nil, redis.call('ZSCORE', key, member)
  for most, length in string.gmatch(windows, '(%d+)/(%d+)') do
    longest = longest or tonumber(length)
    left = math.min(left, most - redis.call('ZCOUNT', key, string.format('(%.6f', (now - length) / 1e6), '+inf'))
    local oldest = redis.call('ZRANGE', key, most - 1, most - 1, 'REV', 'WITHSCORES')[2]
    wait = math.max(wait, oldest and oldest * 1e6 + length - now or 0)
  end
  local known = score and score * 1e6 > now - longest
  return known or left > 0, math.max(0, left - (known and 0 or 1)), wait / 1e3, longest / 1e3, now, function()
    if known then return end
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.6f', (now - longest) / 1e6))
    redis.call('ZADD', key, string.format('%.6f', now / 1e6), member)
    redis.call('PEXPIRE', key, kept_ms)
  end
end
