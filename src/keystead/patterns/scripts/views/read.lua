#!lua
-- read: the views of days by value, and by how many different members.
-- KEYS[1..]  hash    days    two each: views by value, and the same put aside
-- ARGV[1]    text    head    of the name of a set of members, before the value
-- ARGV[2]    text    middle  between value and day
-- ARGV[3]    text    tail    after the day
-- ARGV[4]    text    aside   after the day when it was put aside
-- ARGV[5..]  int     number  0..999999, of each day
-- DERIVES  set     members   of each value of a day, and the same put aside
-- Returns  for each day {value, views, members ...}
-- Cost     O(values)         Repeat: safe
local head, middle, tail, aside, answer = ARGV[1], ARGV[2], ARGV[3], ARGV[4], {}

for place = 1, #KEYS, 2 do
  local number, at, found = 4 + (place + 1) / 2, {}, {}
  local day = ARGV[number]
  for _, hash in ipairs({KEYS[place], KEYS[place + 1]}) do
    local flat = redis.call('HGETALL', hash)
    for field = 1, #flat, 2 do
      local value = flat[field]
      if not at[value] then
        local name = head .. value .. middle .. day
        at[value] = #found + 1
        found[#found + 1] = value
        found[#found + 1] = 0
        found[#found + 1] = redis.call('SCARD', name .. tail) + redis.call('SCARD', name .. aside)
      end
      found[at[value] + 1] = found[at[value] + 1] + tonumber(flat[field + 1])
    end
  end
  answer[#answer + 1] = found
end
return answer
