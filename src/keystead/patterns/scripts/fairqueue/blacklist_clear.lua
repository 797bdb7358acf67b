#!lua
-- blacklist_clear: take a reason off a shard, or all of them; without any left the shard is served again.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  zset    listed      blacklisted shards by when that ends
-- KEYS[7]  string  blacklist   of this shard
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    shard
-- ARGV[7]  text    value       empty for all
-- DERIVES  zset    ready, delayed, leased; hash items: filled with the shard
-- Returns  number of reasons left
-- Cost     O(log n)   Repeat: safe
-- include _rest
-- include _place
local listed, blacklist, shard, value, kept, last = KEYS[6], KEYS[7], ARGV[6], ARGV[7], {}, 0
for _, reason in ipairs(cjson.decode(call('GET', blacklist) or '[]')) do
  if value ~= '' and reason.value ~= value and reason['until'] > now then
    kept[#kept + 1], last = reason, math.max(last, reason['until'])
  end
end

if #kept > 0 then
  call('SET', blacklist, cjson.encode(kept), 'PX', last - now)
  call('ZADD', listed, last, shard)
else
  call('DEL', blacklist)
  call('ZREM', listed, shard)
end
place(shard)
return #kept
