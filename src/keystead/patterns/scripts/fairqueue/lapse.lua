#!lua
-- lapse: take items back from holders that are gone; those delivered too often die.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  hash    conf        settings made at run time
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    keepalive   template
-- ARGV[7]  text    queue       what the keepalive's UUID is made from, with the id
-- ARGV[8]  text    number      two digits that its UUIDs end with
-- ARGV[9]  text    dead        template
-- ARGV[10] int     most        1..1000 items to look at
-- ARGV[11] int     attempts    most deliveries that may lapse, where conf has no number
-- DERIVES  zset    ready, delayed, leased, dead; hash items; string keepalive: filled with a shard or an id
-- Returns  {items made ready, {shard, id, of each that died}}
-- Cost     O(k log m)   Repeat: safe; it only does what is due
local conf, dead_of, left, restored, died = KEYS[6], ARGV[9], tonumber(ARGV[10]), 0, {}
-- include _rest
-- include _place
-- include _alive
-- include _ready
-- include _bury
local most_attempts = tonumber(call('HGET', conf, 'max_attempts') or ARGV[11])
for _, shard in ipairs(call('ZRANGEBYSCORE', sleep, '-inf', now, 'LIMIT', 0, 64)) do
  local leased = leased_of:format(shard)
  local ids = call('ZRANGEBYSCORE', leased, '-inf', now, 'LIMIT', 0, left)
  for _, id in ipairs(ids) do
    local alive_ms = call('PTTL', keepalive(id))
    if alive_ms > 0 then
      call('ZADD', leased, now + alive_ms, id)
    elseif call('HINCRBY', items_of:format(shard), id .. '#a', 1) > most_attempts then
      bury(shard, id); died[#died + 1], died[#died + 2] = shard, id
    else
      make_ready(shard, id)
      restored = restored + 1
    end
    if alive_ms <= 0 then call('ZREM', leased, id) end
  end
  left = left - #ids
  if shard:sub(1, 1) ~= '~' then place(shard) end
end
call('HINCRBY', stat, 'leased', 0 - restored - #died / 2); call('HINCRBY', stat, 'redelivered', restored)
return {restored, died}
