-- Lua hands over at most a few thousand values at once.
local function push_all(command, list, items)
  for first = 1, #items, 1000 do
    redis.call(command, list, unpack(items, first, math.min(first + 999, #items)))
  end
end
