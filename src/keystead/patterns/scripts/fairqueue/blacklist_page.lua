#!lua
-- blacklist_page: some of the blacklisted shards with their reasons.
-- KEYS[1]  zset    listed      blacklisted shards by when that ends
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    blacklist   template
-- ARGV[3]  int     cursor      0..1000000000, where to go on
-- ARGV[4]  int     most        1..1000 shards
-- DERIVES  string  blacklist: filled with a shard
-- Returns  {next cursor (0: that was all), {shard, JSON of its reasons}}
-- Cost     O(log n + page)   Repeat: safe
local listed, call, now, blacklist_of = KEYS[1], redis.call, ARGV[1], ARGV[2]
local cursor, most, page = tonumber(ARGV[3]), tonumber(ARGV[4]), {}
call('ZREMRANGEBYSCORE', listed, '-inf', now)
local shards = call('ZRANGE', listed, cursor, cursor + most - 1)
for _, shard in ipairs(shards) do
  page[#page + 1], page[#page + 2] = shard, call('GET', blacklist_of:format(shard)) or '[]'
end
return {#shards == most and cursor + most or 0, page}
