#!lua
-- finish: end leased items for good, each only with its present token, and set right what they cost.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  hash    conf        settings made at run time
-- KEYS[7..] string keepalive   of each item in turn; no lease twice
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    index       template; empty where no fields are declared
-- ARGV[7]  text    mark        template
-- ARGV[8]  int     quantum     where conf has none
-- ARGV[9]  int     mark_ms     how long the id of a finished item is remembered
-- ARGV[10..] text  of_each     shard, id, token, actual cost (empty: as declared), 1 to renew its mark, in turn
-- DERIVES  zset    ready, delayed, leased, index; hash items; string mark: filled with a shard, field or id
-- Returns  array of 1 (finished) or 0 (stale: not the holder any more), one for each item
-- Cost     O(k log m)   Repeat: not safe; a repeat answers 0 for what it finished
-- include _rest
-- include _place
local conf, index_of, mark_of, mark_ms, answers, touched, of, done = KEYS[6], ARGV[6], ARGV[7], ARGV[9], {}, {}, {}, {}
local tokens = call('MGET', unpack(KEYS, 7))
for i = 10, #ARGV, 5 do
  local shard, id, token, actual, at = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]), (i - 5) / 5
  local items, mine = items_of:format(shard), of[shard] or {saved = 0, ids = {}, fields = {}}
  answers[at] = tokens[at] == token and 1 or 0
  if answers[at] == 1 then
    if not of[shard] then of[shard], touched[#touched + 1] = mine, shard end
    local facts = (actual or index_of ~= '') and call('HMGET', items, id .. '#c', id .. '#f') or {}
    if actual then mine.saved = mine.saved + (facts[1] or 1) - actual end
    for field, value in string.gmatch(facts[2] or '', '(%Z+)%z(%Z*)%z') do
      call('ZREM', index_of:format(field), value .. '\0' .. shard .. '\0' .. id)
    end
    for _, fact in ipairs({'', '#c', '#a', '#t', '#p', '#f'}) do mine.fields[#mine.fields + 1] = id .. fact end
    if ARGV[i + 4] == '1' then call('SET', mark_of:format(id), shard, 'PX', mark_ms) end
    mine.ids[#mine.ids + 1], done[#done + 1] = id, KEYS[at + 6]
  end
end
for _, shard in ipairs(touched) do
  local saved = of[shard].saved
  call('ZREM', leased_of:format(shard), unpack(of[shard].ids))
  call('HDEL', items_of:format(shard), unpack(of[shard].fields))
  if saved ~= 0 then
    local set = call('HMGET', conf, 'quantum', 'w:' .. shard)
    local turn = (set[1] or ARGV[8]) * (set[2] or 1)
    local credit = tonumber(call('HGET', deficit, shard))
    local owed = credit or tonumber((call('HGET', deficit, '~' .. shard) or '0'):match('^%S+'))
    local now_owed = math.max(-4 * turn, math.min(owed + saved, math.max(owed, credit and turn or 0)))
    if credit then
      call('HSET', deficit, shard, now_owed)
    elseif now_owed ~= owed then
      call('HSET', deficit, '~' .. shard, ('%.15g %d'):format(now_owed, now + 60000))
      call('ZADD', sleep, now + 60000, '~' .. shard)
    end
  end
  place(shard)
end
if #done > 0 then
  call('DEL', unpack(done))
  call('HINCRBY', stat, 'leased', -#done); call('HINCRBY', stat, 'acked', #done)
end
return answers
