-- The oldest items of the queue, moved into purgatory; with leftovers_first those that already lie there.
-- An item that some worker died with is taken alone, so that another crash accuses nobody else.
local function take_items(queue, purgatory, poison, most, leftovers_first)
  local recovered = redis.call('LLEN', purgatory) > 0 and leftovers_first
  local items = redis.call('LRANGE', recovered and purgatory or queue, 0, most - 1)
  if #items > 1 and redis.call('EXISTS', poison) == 1 then
    for place, item in ipairs(items) do
      if redis.call('HEXISTS', poison, 'crashed:' .. redis.sha1hex(item)) == 1 then
        items = {unpack(items, 1, math.max(1, place - 1))}
        break
      end
    end
  end
  if #items > 0 and not recovered then
    redis.call('LTRIM', queue, #items, -1)
    push_all('RPUSH', purgatory, items)
  end
  return {recovered and 1 or 0, items}
end
