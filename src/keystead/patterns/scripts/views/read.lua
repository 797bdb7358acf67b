#!lua
-- read: the views of days by value, and by how many different members.
-- KEYS[1..]  hash    days    two each: views by value, and the same put aside
-- ARGV[1]    text    head    of the name of a set of members, before the value
-- ARGV[2]    text    middle  between value and day
-- ARGV[3]    text    tail    after the day
-- ARGV[4]    text    aside   after the day when it was put aside
-- ARGV[5..]  int     number  0..999999, of each day
-- DERIVES  set     members   of each value of a day, and the same put aside
-- Returns  for each day {value, views, members ...}; a value may come twice, the second time put aside
-- Cost     O(values)         Repeat: safe
local head, middle, tail, aside, answer = ARGV[1], ARGV[2], ARGV[3], ARGV[4], {}

for place = 1, #KEYS, 2 do
  local number, found = 4 + (place + 1) / 2, {}
  local day = ARGV[number]
  for _, pair in ipairs({{KEYS[place], tail}, {KEYS[place + 1], aside}}) do
    local flat = redis.call('HGETALL', pair[1])
    for field = 1, #flat, 2 do
      local members = head .. flat[field] .. middle .. day .. pair[2]
      found[#found + 1] = flat[field]
      found[#found + 1] = flat[field + 1]
      found[#found + 1] = redis.call('SCARD', members)
    end
  end
  answer[#answer + 1] = found
end
return answer
