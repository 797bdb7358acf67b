#!lua
-- finish: remove exactly these items from a worker's purgatory.
-- KEYS[1]    list   purgatory
-- KEYS[2]    hash   poison     items that a worker died with; finished ones are struck out
-- ARGV[1..]  bytes  items      one copy of each is removed
-- Returns  places (from 1) of items that were not there: another worker has adopted them
-- Cost     O(items) when they are the head of purgatory, else O(items * purgatory)
-- Repeat: not safe; a repeat may remove a second copy of an equal item
-- include _exactly
local purgatory, poison = KEYS[1], KEYS[2]

if #ARGV == 0 then return {} end
redis.call('HLEN', poison)  -- a wrong type must show before anything is removed
local missing = remove_exactly(purgatory, ARGV)
acquit(poison, ARGV, missing)
return missing
