#!lua
-- ripen: make ready what waited for its moment: delays that are over and parks past their deadline; drop old debts.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    parked      parked items by their deadline
-- KEYS[7]  zset    order       parked items of each park hash by when they came, all scores 0
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    park        template of a park hash, filled with its documented name
-- ARGV[7]  text    dead        template
-- ARGV[8]  int     most        1..1000 items to move
-- DERIVES  zset    ready, delayed, leased, dead; hash items, park: filled with a shard or the name kept in parked
-- Returns  {items made ready, shards whose dead want pruning}
-- Cost     O(k log m)   Repeat: safe; it only does what is due
-- include _rest
-- include _place
-- include _ready
local parked, order, park_of, dead_of, left = KEYS[6], KEYS[7], ARGV[6], ARGV[7], tonumber(ARGV[8])
local restored, prune = 0, {}
-- include _unpark
for _, shard in ipairs(call('ZRANGEBYSCORE', sleep, '-inf', now, 'LIMIT', 0, 64)) do
  local delayed, debtor = delayed_of:format(shard), shard:match('^~(.+)$')
  local ids = call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, math.max(left, 0))
  for _, id in ipairs(ids) do make_ready(shard, id) end
  if #ids > 0 then call('ZREM', delayed, unpack(ids)); call('HINCRBY', stat, 'delayed', -#ids) end
  left, restored = left - #ids, restored + #ids
  if debtor then
    call('HDEL', deficit, shard)
    if call('EXISTS', dead_of:format(debtor)) == 1 then prune[#prune + 1] = debtor end
    if prune[#prune] == debtor then call('ZADD', sleep, now + 3600000, shard) else call('ZREM', sleep, shard) end
  else
    place(shard)
  end
end
for _, member in ipairs(call('ZRANGEBYSCORE', parked, '-inf', now, 'LIMIT', 0, math.max(left, 0))) do
  local shard, id = member:match('^(%Z+)%z(%Z+)%z')
  if unpark(shard, id) then
    make_ready(shard, id)
    place(shard)
    restored = restored + 1
  else
    call('ZREM', parked, member)
  end
end
return {restored, prune}
