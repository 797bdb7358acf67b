#!lua
-- store: add counts to days of one family, with their breakdowns; what comes after a day was rotated is late.
-- KEYS[1]    string  earliest     first day that may still be here
-- KEYS[2]    hash    rotation     rotated_to: the first day that was not rotated yet
-- KEYS[3]    list    late         counts for days that were rotated, oldest first
-- KEYS[4..]  hash    days         for each day: its counts, then the breakdown of each event that has one
-- ARGV[1]    text    uid          names this call; late entries are numbered under it
-- ARGV[2]    int     most_fields  1..1000000, what a breakdown may hold; more is counted as other
-- ARGV[3]    bytes   amounts      MessagePack: [[day, [[event, amount]...], [[event, [[value, amount]...]]...]]...]
-- Returns  {late entries, amount that went to other}
-- Cost     O(amounts)             Repeat: not safe; a repeat counts again
local earliest, rotation, late, uid, most_fields = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])
local amounts, key, late_entries, overflow, call = ARGV[3], 4, 0, 0, redis.call
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

call('LLEN', late)  -- a wrong type must show before anything is counted
for place = 4, #KEYS do call('HLEN', KEYS[place]) end
for _, one in ipairs(cmsgpack.unpack(amounts)) do
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
return {late_entries, overflow}
