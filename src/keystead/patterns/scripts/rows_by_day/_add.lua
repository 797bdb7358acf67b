-- Adding amounts. The counts of the row that more are counted in are KEYS[other_place]; those of each row follow.
local call, list, late_changes, overflow = redis.call, cmsgpack.unpack(amounts), 0, 0
local gone = day < tonumber(call('HGET', rotation, 'rotated_to') or '-1')

-- A key that holds something else stops the script here, before its first write.
local function check()
  call('LLEN', late)
  call('SCARD', rows)
  assert(tonumber(call('GET', earliest) or '0') and tonumber(call('GET', unverified) or '0'), 'not a number')
  for place, one in ipairs(list) do
    for _, pair in ipairs(one[3]) do
      for _, hash in ipairs({KEYS[other_place], KEYS[other_place + place]}) do
        assert(tonumber(call('HGET', hash, pair[1]) or '0'), 'not a number')
      end
    end
  end
end

local function put_late(row, field, amount)
  local entry = cjson.encode({id = uid .. ':' .. late_changes, unix_date = day, row = row, field = field})
  -- cjson would write fourteen digits of a number, and the rest as an exponent.
  call('RPUSH', late, string.format('%s,"amount":%.0f}', string.sub(entry, 1, -2), amount))
  late_changes = late_changes + 1
end

-- Whether the row is among those of the day, or may join them.
local function counted(row, verified)
  if call('SISMEMBER', rows, row) == 1 then
    return true
  end
  if not verified and row ~= other then
    if tonumber(call('GET', unverified) or '0') >= most_rows then
      return false
    end
    call('INCR', unverified)
  end
  return call('SADD', rows, row) == 1
end

local function add()
  if not gone and day < tonumber(call('GET', earliest) or '1e9') then
    call('SET', earliest, day)
  end
  for place, one in ipairs(list) do
    local row, hash = one[1], KEYS[other_place + place]
    if not gone and not counted(row, one[2]) then
      overflow, hash = overflow + 1, KEYS[other_place]
      call('SADD', rows, other)
    end
    for _, pair in ipairs(one[3]) do
      if gone then put_late(row, pair[1], pair[2]) else call('HINCRBY', hash, pair[1], pair[2]) end
    end
  end
  return {late_changes, overflow}
end
