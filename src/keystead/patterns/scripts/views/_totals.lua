-- Totals of all time, raised by amounts: all of it is reckoned, and refused if anything is no whole number, before the
-- first of it is written.
local function whole(amount)
  if not string.match(amount, '^-?%d+$') then
    error('a count of views is not a whole number', 0)
  end
  return tonumber(amount)
end

local CHUNK = 500

local function raised(total, values, amounts)
  local flat = {}
  for first = 1, #values, CHUNK do
    local before = redis.call('HMGET', total, unpack(values, first, math.min(first + CHUNK - 1, #values)))
    for place, number in ipairs(before) do
      flat[#flat + 1] = values[first + place - 1]
      flat[#flat + 1] = whole(number or '0') + amounts[first + place - 1]
    end
  end
  return flat
end

local function write(total, flat)
  for first = 1, #flat, 2 * CHUNK do
    redis.call('HSET', total, unpack(flat, first, math.min(first + 2 * CHUNK - 1, #flat)))
  end
end
