-- Remove one copy of each item from a list: in one cut when they are its head, otherwise one by one.
-- Gives the places (from 1) of items that were not there.
local function remove_exactly(list, items)
  local held = redis.call('LRANGE', list, 0, #items - 1)
  local head = #held == #items
  for place, item in ipairs(held) do
    head = head and item == items[place]
  end
  local missing = {}
  if head then
    redis.call('LTRIM', list, #items, -1)
    return missing
  end
  for place, item in ipairs(items) do
    if redis.call('LREM', list, 1, item) == 0 then
      missing[#missing + 1] = place
    end
  end
  return missing
end

-- A finished item is no suspect any more. One that was missing is another worker's now, and stays as suspect as it is:
-- who always comes too late for the same item would otherwise wipe out each time what is counted against it.
local function acquit(poison, items, missing)
  if redis.call('HLEN', poison) == 0 then return end
  local gone = {}
  for _, place in ipairs(missing) do gone[place] = true end
  for place, item in ipairs(items) do
    local mark = redis.sha1hex(item)
    if not gone[place] then redis.call('HDEL', poison, mark, 'crashed:' .. mark) end
  end
end
