#!lua
-- wake_parked: signal a park hash and move items that wait there back to their shards, the longest waiting first.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    parked      parked items by their deadline
-- KEYS[7]  hash    park        who waits for one signal; !epoch counts its signals
-- KEYS[8]  zset    order       parked items of each park hash by when they came, all scores 0
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    park        template of a park hash, filled with its documented name
-- ARGV[7]  int     most        0..100 items to move; 0 only signals
-- ARGV[8]  text    field       declared field whose values are wanted; empty for none
-- ARGV[9]  int     held_ms     how long the park hash lives after its last change
-- ARGV[10] text    name        documented name of the park hash
-- DERIVES  zset    ready, delayed, leased; hash items, park: filled with a shard or the name kept in items
-- Returns  {moved, left, values of the field of those moved}
-- Cost     O(log N + k log m), N parked items   Repeat: not safe; a repeat signals and moves again
-- include _rest
-- include _place
-- include _ready
local parked, park, order, park_of, most = KEYS[6], KEYS[7], KEYS[8], ARGV[6], ARGV[7]
local wanted, held_ms, from = ARGV[8], ARGV[9], '[' .. ARGV[10] .. '\0'
-- include _unpark
call('HINCRBY', park, '!epoch', 1)
local values, moved = {}, 0
for _, entry in ipairs(call('ZRANGEBYLEX', order, from, from .. '\255', 'LIMIT', 0, most)) do
  local id, shard = entry:match('%z(%Z+)%z(%Z+)$')
  local fields = wanted ~= '' and call('HGET', items_of:format(shard), id .. '#f') or ''
  if unpark(shard, id) then
    for field, value in string.gmatch(fields, '(%Z+)%z(%Z*)%z') do
      if field == wanted then values[#values + 1] = value end
    end
    make_ready(shard, id)
    place(shard)
    moved = moved + 1
  else
    call('ZREM', order, entry)
  end
end
call('PEXPIRE', park, held_ms)
return {moved, call('HLEN', park) - 1, values}
