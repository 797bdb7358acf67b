#!lua
-- finish: remove the batch with this identifier from purgatory.
-- KEYS[1]  any   purgatory  list or set
-- KEYS[2]  hash  batch      id, taken_at, handed_out
-- ARGV[1]  text  id
-- Returns  1 when it was there, 0 when someone finished it before
-- Cost     O(rows)          Repeat: not safe; a repeat says that someone else did
local purgatory, batch, id = KEYS[1], KEYS[2], ARGV[1]

if redis.call('HGET', batch, 'id') ~= id then return 0 end
redis.call('DEL', purgatory, batch)
return 1
