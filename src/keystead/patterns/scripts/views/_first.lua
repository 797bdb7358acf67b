-- The first day that may be here, from all the keys that say it; 1e9 when none does. An older program kept a hash, the
-- day of each value: it becomes one number.
local function first_day(first_place)
  local first = 1e9
  for place = first_place, #KEYS do
    local earliest = KEYS[place]
    if redis.call('TYPE', earliest)['ok'] == 'hash' then
      local least = 1e9
      for _, day in ipairs(redis.call('HVALS', earliest)) do
        least = math.min(least, tonumber(day))
      end
      redis.call('DEL', earliest)
      redis.call('SET', earliest, least)
    end
    first = math.min(first, tonumber(redis.call('GET', earliest) or '1e9'))
  end
  return first
end
