-- Remove one copy of each delivered entry (ARGV from the second on): in one cut when they are the head of the outbox.
local function cut_head(outbox, delivered)
  local held = delivered > 0 and redis.call('LRANGE', outbox, 0, delivered - 1) or {}
  local head = #held == delivered
  for place, entry in ipairs(held) do
    head = head and entry == ARGV[place + 1]
  end
  if head then
    if delivered > 0 then redis.call('LTRIM', outbox, delivered, -1) end
    return delivered
  end
  local removed = 0
  for place = 2, 1 + delivered do
    removed = removed + redis.call('LREM', outbox, 1, ARGV[place])
  end
  return removed
end
