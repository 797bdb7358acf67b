#!lua
-- remove_by: remove items by a declared field, wherever they are; whoever holds one finds its keepalive gone.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    parked      parked items by their deadline
-- KEYS[7]  zset    entries     index of the field: value NUL shard NUL id
-- KEYS[8]  zset    order       parked items of each park hash by when they came, all scores 0
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    keepalive   template
-- ARGV[7]  text    queue       what the keepalive's UUID is made from, with the id
-- ARGV[8]  text    number      two digits that its UUIDs end with
-- ARGV[9]  text    index       template
-- ARGV[10] text    dead        template
-- ARGV[11] text    park        template of a park hash, filled with its documented name
-- ARGV[12] bytes   lower       first entry, as ZRANGEBYLEX has it
-- ARGV[13] bytes   upper       last entry
-- ARGV[14] int     most        1..1000 items
-- DERIVES  zset    ready, delayed, leased, dead, index; hash items, park; string keepalive: filled with what is found
-- Returns  array of shard, id, shard, id, of what was removed
-- Cost     O(log N + k log m)   Repeat: safe; what is gone is not found again
-- include _rest
-- include _alive
-- include _soon
local parked, entries, order = KEYS[6], KEYS[7], KEYS[8]
local index_of, dead_of, park_of, removed = ARGV[9], ARGV[10], ARGV[11], {}
-- include _drop
-- include _unpark
local places = {{ready_of, 'ready'}, {delayed_of, 'delayed'}, {leased_of, 'leased'}, {dead_of, 'dead'}}
for _, entry in ipairs(call('ZRANGEBYLEX', entries, ARGV[12], ARGV[13], 'LIMIT', 0, ARGV[14])) do
  local shard, id = entry:match('%z(%Z+)%z(%Z+)$')
  unpark(shard, id)
  for _, place in ipairs(places) do
    if call('ZREM', place[1]:format(shard), id) == 1 then call('HINCRBY', stat, place[2], -1) end
  end
  call('DEL', keepalive(id))
  drop(shard, id)
  look_soon(shard)
  removed[#removed + 1], removed[#removed + 2] = shard, id
end
return removed
