-- Takes letters out of a list of dead letters; says which were there. Each is looked for where it was seen first: then
-- the list is walked once for all of them, and not once for each.
local function without(dead, places, letters)
  local gone, was_there, count = 'gone ' .. redis.sha1hex(table.concat(letters)), {}, 0
  for number, letter in ipairs(letters) do
    local place = places[number]
    if redis.call('LINDEX', dead, place) ~= letter then place = redis.call('LPOS', dead, letter) end
    if place then
      redis.call('LSET', dead, place, gone)
      was_there[number], count = true, count + 1
    end
  end
  if count > 0 then redis.call('LREM', dead, count, gone) end
  return was_there, count
end
