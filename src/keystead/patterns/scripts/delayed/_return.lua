-- Return everything in purgatory to the waiting members; gives how many.
local function return_all(purgatory, due, not_before)
  local held = redis.call('ZRANGE', purgatory, 0, -1, 'WITHSCORES')
  for place = 1, #held, 2 do
    local score = tonumber(held[place + 1]) < not_before and string.format('%.17g', not_before) or held[place + 1]
    redis.call('ZADD', due, 'LT', score, held[place])
  end
  redis.call('DEL', purgatory)
  return #held / 2
end
