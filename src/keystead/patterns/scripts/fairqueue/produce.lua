#!lua
-- produce: store an item once, ready or delayed; or leased to the caller at once when nobody waits before it.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  hash    conf        settings made at run time
-- KEYS[7]  string  gate        who may produce, JSON; absent means the defaults
-- KEYS[8]  string  mark        of this id; holds the shard
-- KEYS[9]  string  keepalive   of this id
-- KEYS[10] string  blacklist   of this shard
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    index       template
-- ARGV[7]  text    shard
-- ARGV[8]  text    id
-- ARGV[9]  bytes   body
-- ARGV[10] int     cost        1..1000000
-- ARGV[11] int     priority    0..9
-- ARGV[12] int     delay_ms    0..31622400000
-- ARGV[13] int     mark_ms     how long the id is remembered
-- ARGV[14] int     quantum     where conf has none
-- ARGV[15] int     cap         where conf has none
-- ARGV[16] text    consumer    empty for a plain produce
-- ARGV[17] int     lease_ms
-- ARGV[18] bytes   fields      name NUL value NUL, as often as there are fields
-- DERIVES  zset    ready, delayed, leased, index; hash items: templates filled with the shard or a field's name
-- Returns  OK, DUP, PAUSED, FULL, TOO_BIG, or LEASED
-- Cost     O(log m), m items of the shard           Repeat: safe; a repeat of what was accepted answers DUP
-- include _rest
-- include _place
local conf, gate, mark, keepalive, blacklist = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local index_of, shard, id, body, cost, priority = ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[11]
local delay_ms, mark_ms, consumer, lease_ms, fields = tonumber(ARGV[12]), ARGV[13], ARGV[16], ARGV[17], ARGV[18]
local ready, leased, items = ready_of:format(shard), leased_of:format(shard), items_of:format(shard)

if call('EXISTS', mark) == 1 or call('HEXISTS', items, id) == 1 then return 'DUP' end
local rules = cjson.decode(call('GET', gate) or '{}')
if (rules.state or 'open') ~= 'open' then return 'PAUSED' end
local own = call('HMGET', conf, 'quantum', 'w:' .. shard, 'cap', 'cap:' .. shard)
local turn = (own[1] or ARGV[14]) * (own[2] or 1)
if #body > (rules.max_body or 65536) or cost > turn then return 'TOO_BIG' end
local waiting = call('ZCARD', ready) + call('ZCARD', delayed_of:format(shard))
local held = call('HMGET', stat, 'ready', 'delayed', 'leased', 'parked')
local total = (held[1] or 0) + (held[2] or 0) + (held[3] or 0) + (held[4] or 0)
if waiting >= (rules.max_shard or 10000) or total >= (rules.max_total or 1000000) then return 'FULL' end
local room = (own[4] or own[3] or ARGV[15]) - call('ZCARD', leased)
local direct = consumer ~= '' and waiting == 0 and room > 0 and call('LLEN', ring) + call('EXISTS', blacklist) == 0

call('SET', mark, shard, 'PX', mark_ms)
call('HSET', items, id, body, id .. '#t', now)
if cost ~= 1 then call('HSET', items, id .. '#c', cost) end
if priority ~= '5' then call('HSET', items, id .. '#p', priority) end
if fields ~= '' then call('HSET', items, id .. '#f', fields) end
for field, value in string.gmatch(fields, '(%Z+)%z(%Z*)%z') do
  call('ZADD', index_of:format(field), 0, value .. '\0' .. shard .. '\0' .. id)
end
if direct then
  call('SET', keepalive, consumer .. ':0', 'PX', lease_ms)
  call('ZADD', leased, now + lease_ms, id)
elseif delay_ms > 0 then
  call('ZADD', delayed_of:format(shard), now + delay_ms, id)
else
  call('ZADD', ready, (9 - priority) * 2 ^ 42 + now - 1577836800000, id)
end
call('HINCRBY', stat, 'produced', 1)
call('HINCRBY', stat, direct and 'leased' or delay_ms > 0 and 'delayed' or 'ready', 1)
place(shard)
return direct and 'LEASED' or 'OK'
