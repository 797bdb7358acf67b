#!lua
-- replay_chosen: return certain dead letters to the end of the queue.
-- KEYS[1]    list   dead     one line of facts, then the item
-- KEYS[2]    list   queue
-- ARGV[1..]  bytes  letters  as they lie among the dead
-- Returns  how many were returned; one that is not there any more, or is no dead letter, is left out
-- Cost     O(letters * dead)      Repeat: safe; those that are returned already are left out
-- include _push
-- include _arguments
local dead, queue, letters = KEYS[1], KEYS[2], arguments_from(1)

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
local items = {}
for _, letter in ipairs(letters) do
  local line = string.sub(letter, 1, 1) == '{' and string.find(letter, '\n', 1, true)
  if line and redis.call('LREM', dead, 1, letter) == 1 then
    items[#items + 1] = string.sub(letter, line + 1)
  end
end
push_all('RPUSH', queue, items)
return #items
