#!lua
-- fenced: run writes of a holder, unless a later one has been numbered since.
-- KEYS[1]    string  fence      counter of holders
-- KEYS[2..]  any     keys       one for each command
-- ARGV[1]    int     number     of this holder
-- ARGV[2..]  bytes   commands   each as the number of its arguments after the key, its name and those arguments
-- Returns    {1, reply, reply...}, or {0, latest number} when the holder is not the latest
-- Cost       O(1) and that of the commands    Repeat: not safe; the writes would run again
local fence, number = KEYS[1], ARGV[1]

local latest = redis.call('GET', fence)
if latest ~= number then
  return {0, tonumber(latest or 0)}
end
-- Maps and numbers answer as they do outside of scripts; "nothing" is told by the older way alone.
redis.setresp(3)
local answers, place = {1}, 2
for command = 2, #KEYS do
  local count = tonumber(ARGV[place])
  local reply = redis.call(ARGV[place + 1], KEYS[command], unpack(ARGV, place + 2, place + 1 + count))
  if reply == nil then
    reply = false
  end
  answers[command] = reply
  place = place + 2 + count
end
redis.setresp(2)
return answers
