#!lua
-- park: let a leased item wait for a signal outside the queue, unless the signal has come already.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    parked      parked items by their deadline
-- KEYS[7]  hash    park        who waits for one signal; !epoch counts its signals
-- KEYS[8]  string  keepalive   of this id
-- KEYS[9]  zset    order       parked items of each park hash by when they came, all scores 0
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    shard
-- ARGV[7]  text    id
-- ARGV[8]  text    token
-- ARGV[9]  text    name        documented name of the park hash
-- ARGV[10] int     deadline_ms 1..900000 from now, then the item returns by itself
-- ARGV[11] int     seen_epoch  what was read before asking for the resource; -1 parks whatever was signalled
-- ARGV[12] int     held_ms     how long the park hash lives after its last change
-- ARGV[13] int     crowded_ms  delay of an item for which there is no room to park
-- DERIVES  zset    ready, delayed, leased; hash items: filled with the shard
-- Returns  PARKED, REQUEUED (signalled meanwhile), DELAYED (1,000 in the hash or 5,000 of the shard), or STALE
-- Cost     O(log m)   Repeat: not safe; a repeat answers STALE
-- include _rest
-- include _place
-- include _ready
local parked, park, keepalive, order = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local shard, id, token, since = ARGV[6], ARGV[7], ARGV[8], ('%013d'):format(now)
local name, deadline, seen_epoch, items = ARGV[9], now + ARGV[10], tonumber(ARGV[11]), items_of:format(shard)
if call('GET', keepalive) ~= token then return 'STALE' end
local epoch, attempt = tonumber(call('HGET', park, '!epoch') or 0), call('HGET', items, id .. '#a')
local crowded = call('HLEN', park) > 1000 or tonumber(call('HGET', items, '!parked') or 0) >= 5000
if call('ZREM', leased_of:format(shard), id) == 0 then return 'STALE' end

local answer = seen_epoch >= 0 and epoch ~= seen_epoch and 'REQUEUED' or crowded and 'DELAYED' or 'PARKED'
call('DEL', keepalive)
call('HINCRBY', stat, 'leased', -1)
if answer == 'REQUEUED' then
  make_ready(shard, id)
elseif answer == 'DELAYED' then
  call('ZADD', delayed_of:format(shard), now + ARGV[13], id)
  call('HINCRBY', stat, 'delayed', 1)
else
  local waits = {shard = shard, token_attempt = tonumber(attempt or 0), parked_at = now, deadline = deadline,
    prio = tonumber(call('HGET', items, id .. '#p') or 5)}
  call('HSET', park, id, cjson.encode(waits))
  call('PEXPIRE', park, ARGV[12])
  call('HSET', items, id .. '#k', name .. '\0' .. since)
  call('HINCRBY', items, '!parked', 1)
  call('ZADD', parked, deadline, shard .. '\0' .. id .. '\0' .. name)
  call('ZADD', order, 0, name .. '\0' .. since .. '\0' .. id .. '\0' .. shard)
  call('HINCRBY', stat, 'parked', 1)
end
place(shard)
return answer
