-- Add up to `want` items of a queue to `items`, leaving suspects at its front: an item on its last try after crashes
-- is taken alone, and only where `idle` says that the worker holds nothing. Gives {suspects wait, one was taken alone}.
local function pick(queue, poison, items, want, idle)
  local seen = redis.call('LRANGE', queue, 0, want - 1 + math.min(redis.call('HLEN', poison), 1000))
  local waiting, passed = {}, 0
  for place, item in ipairs(seen) do
    if want == 0 then break end
    passed = place
    if redis.call('HEXISTS', poison, 'crashed:' .. redis.sha1hex(item)) == 0 then
      items[#items + 1], want, idle = item, want - 1, false
    elseif idle and place == 1 then
      items[1] = item
      redis.call('LPOP', queue)
      return false, true
    else
      table.insert(waiting, 1, item)
    end
  end
  redis.call('LTRIM', queue, passed, -1)
  push_all('LPUSH', queue, waiting)
  return #waiting > 0, false
end
