#!lua
-- recount: how many items some shards really hold.
-- KEYS[1]  hash    stat        only names the slot and the counts
-- ARGV[1]  text    ready       template
-- ARGV[2]  text    delayed     template
-- ARGV[3]  text    leased      template
-- ARGV[4]  text    dead        template
-- ARGV[5..] text   shards
-- DERIVES  zset    ready, delayed, leased, dead: filled with a shard
-- Returns  {ready, delayed, leased, dead, moves}: sums, and a number that any change of the counts changes
-- Cost     O(shards)   Repeat: safe
local stat, call, sums = KEYS[1], redis.call, {0, 0, 0, 0}
for i = 5, #ARGV do
  for at, of in ipairs({ARGV[1], ARGV[2], ARGV[3], ARGV[4]}) do
    sums[at] = sums[at] + call('ZCARD', of:format(ARGV[i]))
  end
end
sums[5] = redis.sha1hex(table.concat(call('HVALS', stat), ' '))
return sums
