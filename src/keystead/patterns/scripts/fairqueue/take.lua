#!lua
-- take: lease items of the shards whose turn it is, by deficit round robin.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  hash    conf        settings made at run time
-- KEYS[7]  zset    parked      parked items by their deadline
-- KEYS[8]  zset    listed      blacklisted shards; without it no shard's blacklist is looked at
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    keepalive   template
-- ARGV[7]  text    queue       what the keepalive's UUID is made from, with the id
-- ARGV[8]  text    number      two digits that its UUIDs end with
-- ARGV[9]  text    blacklist   template
-- ARGV[10] int     most        1..100 items
-- ARGV[11] text    consumer
-- ARGV[12] int     lease_ms    0 for the setting, or the default after it
-- ARGV[13] int     default_lease_ms
-- ARGV[14] int     quantum     where conf has none
-- ARGV[15] int     cap         where conf has none
-- DERIVES  zset    ready, delayed, leased; hash items; string keepalive, blacklist: filled with a shard or an id
-- Returns  {when to look again in ms, or inf; steps; again; items: {shard, id, attempt, stored_ms, cost, body}}
-- Cost     O((n + skips) log m)   Repeat: not safe; items of a lost reply stay leased until their lease ends
-- include _rest
-- include _alive
local conf, parked, listed, most, consumer, reply = KEYS[6], KEYS[7], KEYS[8], tonumber(ARGV[10]), ARGV[11], {}
local set, turn = call('HMGET', conf, 'quantum', 'cap', 'lease_ms'), call('HGET', deficit, '!turn')
local lease_ms, blacklisted = ARGV[12] ~= '0' and ARGV[12] or set[3] or ARGV[13], call('EXISTS', listed) == 1
local count, bytes, steps, full, delays = 0, 0, 0, false, call('HGET', stat, 'delayed') or '0'
local shards = call('LRANGE', ring, 0, most - 1)
while #shards > 0 and not full and steps < 400 do
  local credits, stay, kept, gone = call('HMGET', deficit, unpack(shards)), {}, {}, {'!turn'}
  for i, shard in ipairs(shards) do
    local ready, leased, items = ready_of:format(shard), leased_of:format(shard), items_of:format(shard)
    local blocked = blacklisted and call('PTTL', ARGV[9]:format(shard)) or -2
    local own, held = call('HMGET', conf, 'w:' .. shard, 'cap:' .. shard), call('ZCARD', leased)
    local taken, checks, room = {}, {}, blocked ~= -2 and 0 or math.max(0, (own[2] or set[2] or ARGV[15]) - held)
    local credit = (credits[i] or 0) + (turn == shard and steps == 0 and 0 or (set[1] or ARGV[14]) * (own[1] or 1))
    local upto = math.max(0, math.floor(math.min(room, most - count, credit)))
    local ids = room > 0 and call('ZRANGE', ready, 0, upto) or {}
    for at, id in ipairs(ids) do
      local facts = call('HMGET', items, id, id .. '#c', id .. '#a', id .. '#t')
      local body, cost, attempt = facts[1] or '', tonumber(facts[2] or 1), facts[3] or '0'
      if full or #taken == room or cost > credit then break end
      credit, count, bytes = credit - cost, count + 1, bytes + #body
      taken[at], checks[2 * at - 1], checks[2 * at] = id, now + lease_ms, id
      call('SET', keepalive(id), consumer .. ':' .. attempt, 'PX', lease_ms)
      reply[count], full = {shard, id, attempt, facts[4] or now, cost, body}, count == most or bytes >= 1048576
    end
    if #taken > 0 then call('ZREM', ready, unpack(taken)); call('ZADD', leased, unpack(checks)) end
    local due = held > 0 and first(leased) <= now or delays ~= '0' and first(delayed_of:format(shard)) <= now
    if #taken == #ids or #taken == room or due and not full then
      gone[#gone + 1] = shard
      if credit < 0 or due then
        kept[#kept + 1], kept[#kept + 2] = '~' .. shard, ('%.15g %d'):format(credit, now + 60000)
        call('ZADD', sleep, now + 60000, '~' .. shard)
      end
      rest(shard, blocked ~= -2 and now + math.abs(blocked) or nil)
    else
      kept[#kept + 1], kept[#kept + 2], stay[#stay + 1] = shard, credit, not full and shard or nil
      if full then kept[#kept + 1], kept[#kept + 2] = '!turn', shard end
    end
    if full then break end
  end
  call('LTRIM', ring, #stay + #gone - 1, -1); call('HDEL', deficit, unpack(gone))
  if #stay > 0 then call('RPUSH', ring, unpack(stay)) end
  if #kept > 0 then call('HSET', deficit, unpack(kept)) end
  steps, shards = steps + #stay + #gone - 1, call('LRANGE', ring, 0, most - 1)
end
if count > 0 then call('HINCRBY', stat, 'ready', -count); call('HINCRBY', stat, 'leased', count) end
if #shards == 0 then call('DEL', bell) elseif call('LLEN', bell) == 0 then call('RPUSH', bell, 1) end
return {tostring(math.min(first(sleep), first(parked))), steps, #shards > 0 and not full and 1 or 0, reply}
