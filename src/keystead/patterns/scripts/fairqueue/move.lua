#!lua
-- move: give a waiting item to another shard; it keeps priority, attempts and age.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  string  mark        of this id; holds the shard
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    index       template
-- ARGV[7]  text    shard
-- ARGV[8]  text    id
-- ARGV[9]  text    target      the other shard
-- DERIVES  zset    ready, delayed, leased, index; hash items: filled with a shard or the name of a field
-- Returns  1 when moved, 0 when the item is not ready or delayed there
-- Cost     O(log m)   Repeat: safe; a repeat answers 0
-- include _rest
-- include _place
local mark, index_of, shard, id, target = KEYS[6], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local from, to = items_of:format(shard), items_of:format(target)
-- include _drop
local of, score = ready_of, call('ZSCORE', ready_of:format(shard), id)
if not score then of, score = delayed_of, call('ZSCORE', delayed_of:format(shard), id) end
if not score or shard == target then return score and 1 or 0 end

for _, name in ipairs({id, id .. '#c', id .. '#a', id .. '#t', id .. '#p', id .. '#f'}) do
  local value = call('HGET', from, name)
  if value then call('HSET', to, name, value) end
end
drop(shard, id)
for field, value in string.gmatch(call('HGET', to, id .. '#f') or '', '(%Z+)%z(%Z*)%z') do
  call('ZADD', index_of:format(field), 0, value .. '\0' .. target .. '\0' .. id)
end
call('ZREM', of:format(shard), id)
call('ZADD', of:format(target), score, id)
call('SET', mark, target, 'XX', 'KEEPTTL')
place(shard)
place(target)
return 1
