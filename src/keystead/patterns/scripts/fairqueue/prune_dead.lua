#!lua
-- prune_dead: forget the dead of a shard that are too old or too many, the oldest first.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    dead        of this shard, by when they died
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    index       template
-- ARGV[7]  text    shard
-- DERIVES  zset    index; hash items: filled with the shard or the name of a field
-- Returns  array of the ids that were forgotten, at most 200
-- Cost     O(k log m)   Repeat: safe
-- include _rest
local dead, index_of, shard = KEYS[6], ARGV[6], ARGV[7]
-- include _drop
local surplus = math.max(0, call('ZCARD', dead) - 1000)
local old = math.max(surplus, call('ZCOUNT', dead, '-inf', now - 561600000))
local ids = old > 0 and call('ZRANGE', dead, 0, math.min(old, 200) - 1) or {}
for _, id in ipairs(ids) do
  call('ZREM', dead, id)
  drop(shard, id)
end
if #ids > 0 then call('HINCRBY', stat, 'dead', -#ids) end
local oldest = first(dead)
if oldest < math.huge then call('ZADD', sleep, 'LT', old > 200 and now or oldest + 561600000, '~' .. shard) end
return ids
