#!lua
-- settle_all: remove several items from a worker's purgatory and do all that follows from them; nothing if one is gone.
-- KEYS[1]    list   purgatory
-- KEYS[2]    hash   poison     items that a worker died with; settled ones are struck out
-- KEYS[3..]  any    places     keys of the writes
-- ARGV[1]    bytes  writes     packed, see guarded/_writes: of all the items together
-- ARGV[2..]  bytes  items      no two of them equal
-- Returns  {1; late entries and overflow for each tally; what went wrong, if anything}, or {0}: one of them is not
--          there, nothing happened. What goes wrong with one write harms no other: they may be of different items.
-- Cost     O(writes + items) when they are the head of purgatory, else O(writes + items * purgatory)
-- Repeat: not safe; a repeat may settle second copies of equal items
-- include _exactly
-- include keystead.patterns:scripts/guarded/_writes
local purgatory, poison, packed = KEYS[1], KEYS[2], ARGV[1]
local items = {unpack(ARGV, 2)}

local writes = read_writes(packed, 3)
redis.call('HLEN', poison)  -- a wrong type must show before anything is removed
local first = redis.call('LRANGE', purgatory, 0, #items - 1)
for place, item in ipairs(items) do
  if first[place] ~= item and not redis.call('LPOS', purgatory, item) then return {0} end
end
acquit(poison, items, remove_exactly(purgatory, items))
local wrong = {}
local stored = write_all(writes, 3, wrong)
stored[#stored + 1] = wrong[1]
return {1, unpack(stored)}
