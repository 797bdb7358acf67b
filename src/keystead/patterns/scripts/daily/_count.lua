-- Counts of one family. A wrong type must show before anything is counted: late, and the day keys from first to last.
local function check_counts(late, first, last)
  redis.call('LLEN', late)
  for place = first, last do redis.call('HLEN', KEYS[place]) end
end

-- Adds amounts to the days whose keys stand in KEYS from key on: each day's counts, then the breakdown of each event
-- that has one. What comes after its day was rotated is late. Gives the late entries and the amount that became other.
local function count_all(earliest, rotation, late, key, uid, most_fields, amounts)
  local call, late_entries, overflow = redis.call, 0, 0
  local rotated_to = tonumber(call('HGET', rotation, 'rotated_to') or '-1')
  local first = tonumber(call('GET', earliest) or '1e9')

  local function put_late(day, event, breakdown, amount)
    local entry = cjson.encode({id = uid .. ':' .. late_entries, unix_date = day, event = event, breakdown = breakdown})
    -- cjson would write fourteen digits of a number, and the rest as an exponent.
    call('RPUSH', late, string.format('%s,"amount":%.0f}', string.sub(entry, 1, -2), amount))
    late_entries = late_entries + 1
  end

  local function too_many(breakdown, new_value)
    local fields = call('HLEN', breakdown)
    return fields > most_fields and new_value ~= 'other' and fields - call('HEXISTS', breakdown, 'other') > most_fields
  end

  for _, one in ipairs(amounts) do
    local day, counts = one[1], KEYS[key]
    local gone = day < rotated_to
    key = key + 1
    if not gone and day < first then
      call('SET', earliest, day)
      first = day
    end
    for _, plain in ipairs(one[2]) do
      if gone then put_late(day, plain[1], nil, plain[2]) else call('HINCRBY', counts, plain[1], plain[2]) end
    end
    for _, broken_down in ipairs(one[3]) do
      local event, breakdown, sum = broken_down[1], KEYS[key], 0
      key = key + 1
      for _, pair in ipairs(broken_down[2]) do
        local value, amount = pair[1], pair[2]
        sum = sum + amount
        if gone then
          put_late(day, event, value, amount)
        elseif call('HINCRBY', breakdown, value, amount) == amount and too_many(breakdown, value) then
          call('HDEL', breakdown, value)
          call('HINCRBY', breakdown, 'other', amount)
          overflow = overflow + amount
        end
      end
      if not gone then call('HINCRBY', counts, event, sum) end
    end
  end
  return late_entries, overflow
end
