#!lua
-- read: the views of days by value, and by how many different members.
-- KEYS[1..]  hash    days    two each: views by value, and the same put aside
-- ARGV[1]    text    head    of the name of a set of members, before the value
-- ARGV[2]    text    middle  between value and day
-- ARGV[3]    text    tail    after the day
-- ARGV[4..]  int     number  0..999999, of each day
-- DERIVES  set     members   of each value of a day
-- Returns  for each day {value, views, members ...}
-- Cost     O(values)         Repeat: safe
local head, middle, tail, answer = ARGV[1], ARGV[2], ARGV[3], {}

for place = 1, #KEYS, 2 do
  local number, found = 3 + (place + 1) / 2, {}
  local day = ARGV[number]
  for _, hash in ipairs({KEYS[place], KEYS[place + 1]}) do
    local flat = redis.call('HGETALL', hash)
    for field = 1, #flat, 2 do
      found[#found + 1] = flat[field]
      found[#found + 1] = flat[field + 1]
      found[#found + 1] = redis.call('SCARD', head .. flat[field] .. middle .. day .. tail)
    end
  end
  answer[#answer + 1] = found
end
return answer
