#!lua
-- replay: return the oldest dead letters to the end of the queue.
-- KEYS[1]  list  dead     one line of facts, then the item
-- KEYS[2]  list  queue
-- ARGV[1]  int   most     1..5000
-- Returns  how many were returned; an element that is no dead letter goes to the end of the dead letters
-- Cost     O(most)        Repeat: not safe; a repeat returns others
-- include _push
local dead, queue, most = KEYS[1], KEYS[2], tonumber(ARGV[1])

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
local letters, items, others = redis.call('LRANGE', dead, 0, most - 1), {}, {}
for _, letter in ipairs(letters) do
  local line = string.sub(letter, 1, 1) == '{' and string.find(letter, '\n', 1, true)
  if line then
    items[#items + 1] = string.sub(letter, line + 1)
  else
    others[#others + 1] = letter
  end
end
redis.call('LTRIM', dead, #letters, -1)
push_all('RPUSH', queue, items)
push_all('RPUSH', dead, others)
return #items
