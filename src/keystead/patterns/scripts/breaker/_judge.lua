-- Whether the breaker is open. Uses calls, now, window, trips_at, of_calls, share_percent.
-- By count (of_calls 0) every member is a failure; by share a failure's member begins with f.
local function judge()
  redis.call('ZREMRANGEBYSCORE', calls, '-inf', now - window)
  -- From the future: noted by a clock that was ahead then. They would be the last calls for as long as it was.
  redis.call('ZREMRANGEBYSCORE', calls, now + window, '+inf')
  if of_calls == 0 then
    local failures = redis.call('ZCARD', calls)
    return failures >= trips_at, failures
  end
  local failures, recent = 0, redis.call('ZRANGE', calls, -of_calls, -1)
  for _, call in ipairs(recent) do
    if string.sub(call, 1, 1) == 'f' then
      failures = failures + 1
    end
  end
  return #recent >= of_calls and failures * 100 >= share_percent * #recent, failures
end
