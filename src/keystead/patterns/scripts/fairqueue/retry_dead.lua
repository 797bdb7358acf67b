#!lua
-- retry_dead: make dead items ready again, as if never tried.
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
-- ARGV[6]  text    shard
-- ARGV[7..] text   ids
-- DERIVES  zset    ready, delayed, leased; hash items: filled with the shard
-- Returns  number of items that were dead
-- Cost     O(k log m)   Repeat: safe
-- include _rest
-- include _place
-- include _ready
local dead, shard, retried = KEYS[6], ARGV[6], 0
for i = 7, #ARGV do
  if call('ZREM', dead, ARGV[i]) == 1 then
    call('HDEL', items_of:format(shard), ARGV[i] .. '#a')
    make_ready(shard, ARGV[i])
    retried = retried + 1
  end
end
if retried > 0 then call('HINCRBY', stat, 'dead', -retried) end
if call('EXISTS', dead) == 0 then call('ZADD', sleep, 'XX', 'LT', now + 60000, '~' .. shard) end
place(shard)
return retried
