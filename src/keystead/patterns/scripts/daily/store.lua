#!lua
-- store: add counts to days of one family, with their breakdowns; what comes after a day was rotated is late.
-- KEYS[1]    string  earliest     first day that may still be here
-- KEYS[2]    hash    rotation     rotated_to: the first day that was not rotated yet
-- KEYS[3]    list    late         counts for days that were rotated, oldest first
-- KEYS[4..]  hash    days         for each day: its counts, then the breakdown of each event that has one
-- ARGV[1]    text    uid          names this call; late entries are numbered under it
-- ARGV[2]    int     most_fields  1..1000000, what a breakdown may hold; more is counted as other
-- ARGV[3..]  text    amounts      for each day: day, number of plain events, number of all events, event and amount of
--                                 each (plain ones first), then for each other event: event, number of values, value
--                                 and amount of each
-- Returns  {late entries, amount that went to other}
-- Cost     O(amounts)             Repeat: not safe; a repeat counts again
local earliest, rotation, late, uid, most_fields = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])
local next_key, next_argument, late_entries, overflow = 4, 3, 0, 0
local rotated_to = tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1')
local first = tonumber(redis.call('GET', earliest) or '1e9')

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
  local day, plain, all = tonumber(ARGV[next_argument]), tonumber(ARGV[next_argument + 1]), ARGV[next_argument + 2]
  local counts, start, gone = KEYS[next_key], next_argument + 3, day < rotated_to
  next_key, next_argument = next_key + 1, start + 2 * all
  if not gone and day < first then
    redis.call('SET', earliest, day)
    first = day
  end
  for place = start, start + 2 * (gone and plain or all) - 1, 2 do
    if gone then
      put_late(day, ARGV[place], nil, tonumber(ARGV[place + 1]))
    else
      redis.call('HINCRBY', counts, ARGV[place], ARGV[place + 1])
    end
  end
  for _ = plain + 1, all do
    local event, values, breakdown = ARGV[next_argument], ARGV[next_argument + 1], KEYS[next_key]
    for place = next_argument + 2, next_argument + 2 * values, 2 do
      local field, amount = ARGV[place], ARGV[place + 1]
      if gone then
        put_late(day, event, field, tonumber(amount))
      elseif redis.call('HINCRBY', breakdown, field, amount) == tonumber(amount) and too_many(breakdown, field) then
        redis.call('HDEL', breakdown, field)
        redis.call('HINCRBY', breakdown, 'other', amount)
        overflow = overflow + amount
      end
    end
    next_key, next_argument = next_key + 1, next_argument + 2 + 2 * values
  end
end
return {late_entries, overflow}
