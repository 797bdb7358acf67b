#!lua
-- store: add counts to days of one family, with their breakdowns; what comes after a day was rotated is late.
-- KEYS[1]    string  earliest     first day that may still be here
-- KEYS[2]    hash    rotation     rotated_to: the first day that was not rotated yet
-- KEYS[3]    list    late         counts for days that were rotated, oldest first
-- KEYS[4..]  hash    days         for each day: its counts, then the breakdown of each event that has one
-- ARGV[1]    text    uid          names this call; late entries are numbered under it
-- ARGV[2]    int     most_fields  1..1000000, what a breakdown may hold; more is counted as other
-- ARGV[3..]  text    amounts      for each day: day, n, n times event amount, m, m times event n (n times field amount)
-- Returns  {late entries, amount that went to other}
-- Cost     O(amounts)             Repeat: not safe; a repeat counts again
local earliest, rotation, late, uid, most_fields = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])
local next_key, next_argument, late_entries, overflow = 4, 3, 0, 0
local rotated_to = tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1')
local first = tonumber(redis.call('GET', earliest) or '1e9')

local function take()
  next_argument = next_argument + 1
  return ARGV[next_argument - 1]
end

local function put_late(day, event, breakdown, amount)
  local entry = {id = uid .. ':' .. late_entries, unix_date = day, event = event, breakdown = breakdown, amount = amount}
  redis.call('RPUSH', late, cjson.encode(entry))
  late_entries = late_entries + 1
end

local function too_many(breakdown, new_field)
  local fields = redis.call('HLEN', breakdown)
  return fields > most_fields and new_field ~= 'other' and fields - redis.call('HEXISTS', breakdown, 'other') > most_fields
end

while next_argument <= #ARGV do
  local day, counts = tonumber(take()), KEYS[next_key]
  local gone = day < rotated_to
  next_key = next_key + 1
  if not gone and day < first then
    redis.call('SET', earliest, day)
    first = day
  end
  for _ = 1, take() do
    local event, amount = take(), take()
    if gone then put_late(day, event, nil, tonumber(amount)) else redis.call('HINCRBY', counts, event, amount) end
  end
  for _ = 1, take() do
    local event, fields, breakdown, sum = take(), tonumber(take()), KEYS[next_key], 0
    next_key = next_key + 1
    for _ = 1, fields do
      local field, amount = take(), take()
      if gone then
        put_late(day, event, field, tonumber(amount))
      elseif redis.call('HINCRBY', breakdown, field, amount) == tonumber(amount) and too_many(breakdown, field) then
        redis.call('HDEL', breakdown, field)
        redis.call('HINCRBY', breakdown, 'other', amount)
        overflow = overflow + amount
      end
      sum = sum + amount
    end
    if not gone then redis.call('HINCRBY', counts, event, string.format('%.0f', sum)) end
  end
end
return {late_entries, overflow}
