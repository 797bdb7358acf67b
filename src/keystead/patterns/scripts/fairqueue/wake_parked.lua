#!lua
-- wake_parked: signal a park hash and move items that wait there back to their shards, the longest waiting first.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    parked      parked items by their deadline
-- KEYS[7]  hash    park        who waits for one signal; !epoch counts its signals
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    park        template of a park hash, filled with its documented name
-- ARGV[7]  int     most        0..1000 items to move; 0 only signals
-- ARGV[8]  text    field       declared field whose values are wanted; empty for none
-- ARGV[9]  int     held_ms     how long the park hash lives after its last change
-- DERIVES  zset    ready, delayed, leased; hash items, park: filled with a shard or the name kept in items
-- Returns  {moved, left, values of the field of those moved}
-- Cost     O(w log w + k log m), w items in the park hash   Repeat: not safe; a repeat signals and moves again
-- include _rest
-- include _place
-- include _ready
local parked, park, park_of, most, wanted, held_ms = KEYS[6], KEYS[7], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
-- include _unpark
call('HINCRBY', park, '!epoch', 1)
local waiting, values, all = {}, {}, call('HGETALL', park)
for i = 1, #all, 2 do
  -- Read by hand, not as JSON: a full park hash would take milliseconds.
  local since, shard = all[i + 1]:match('"parked_at":(%d+)'), all[i + 1]:match('"shard":"([^"]+)"')
  if since and shard then waiting[#waiting + 1] = ('%013d %s %s'):format(since, all[i], shard) end
end
table.sort(waiting)
local moved = math.min(most, #waiting)
for i = 1, moved do
  local id, shard = waiting[i]:match(' (%S+) (%S+)$')
  for field, value in string.gmatch(call('HGET', items_of:format(shard), id .. '#f') or '', '(%Z+)%z(%Z*)%z') do
    if field == wanted then values[#values + 1] = value end
  end
  unpark(shard, id)
  make_ready(shard, id)
  place(shard)
end
call('PEXPIRE', park, held_ms)
return {moved, #waiting - moved, values}
