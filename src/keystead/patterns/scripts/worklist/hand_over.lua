#!lua
-- hand_over: remove items from purgatory and push what followed from each onto another list, in one step.
-- KEYS[1]    list   purgatory
-- KEYS[2]    hash   poison     items that a worker died with; finished ones are struck out
-- KEYS[3]    list   target     same tag
-- ARGV[1..]  bytes  pairs      an item, then what is pushed for it; and so on
-- Returns  places (from 1) of items that were not there; nothing was pushed for those
-- Cost     O(pairs * purgatory), O(pairs) when taken from its head
-- Repeat: not safe; a repeat may remove a second copy of an equal item
-- include _exactly
-- include _push
local purgatory, poison, target = KEYS[1], KEYS[2], KEYS[3]
local items, results = {}, {}
for place = 1, #ARGV, 2 do
  items[#items + 1], results[#results + 1] = ARGV[place], ARGV[place + 1]
end

redis.call('LLEN', target)  -- a wrong type must show before anything is removed
redis.call('HLEN', poison)
local gone, missing = {}, remove_exactly(purgatory, items)
for _, place in ipairs(missing) do gone[place] = true end
local pushed = {}
for place, result in ipairs(results) do
  if not gone[place] then pushed[#pushed + 1] = result end
end
push_all('RPUSH', target, pushed)
acquit(poison, items, missing)
return missing
