-- What a dead letter is: one line of facts, then the item byte for byte.
local function letter(item, attempts, facts)
  return '{"attempts":' .. string.format('%d', attempts) .. ',' .. facts .. '\n' .. item
end

-- Count a try against each item. Those with too many go to the dead letters; gives the others in their order.
-- One that may crash once more only is marked: its last try is made alone, and accuses nobody else.
local function accuse(items, poison, dead, tries, held_ms, facts, crashed)
  local left, letters, counted = {}, {}, {}
  for _, item in ipairs(items) do
    local mark = redis.sha1hex(item)
    counted[mark] = counted[mark] or redis.call('HINCRBY', poison, mark, 1)
    if counted[mark] >= tries then
      redis.call('HDEL', poison, mark, 'crashed:' .. mark)
      letters[#letters + 1] = letter(item, counted[mark], facts)
    else
      if crashed and counted[mark] >= tries - 1 then redis.call('HSET', poison, 'crashed:' .. mark, '1') end
      left[#left + 1] = item
    end
  end
  if #items > 0 then redis.call('PEXPIRE', poison, held_ms) end
  push_all('RPUSH', dead, letters)
  return left, #letters
end

local function reversed(items)
  local found = {}
  for place = #items, 1, -1 do found[#found + 1] = items[place] end
  return found
end
