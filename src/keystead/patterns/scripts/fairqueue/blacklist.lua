#!lua
-- blacklist: add reasons for which shards are not served; each ends by itself.
-- KEYS[1]  zset    listed      blacklisted shards by when that ends
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    blacklist   template
-- ARGV[3..] text   of_each     shard, value, how many ms from now, of each reason in turn
-- DERIVES  string  blacklist: filled with a shard
-- Returns  number of reasons that were added or renewed
-- Cost     O(k)   Repeat: safe
local listed, call, now, blacklist_of, added = KEYS[1], redis.call, tonumber(ARGV[1]), ARGV[2], 0
for i = 3, #ARGV, 3 do
  local shard, value, ends = ARGV[i], ARGV[i + 1], now + ARGV[i + 2]
  local key, reasons, last = blacklist_of:format(shard), {{value = value, ['until'] = ends}}, ends
  for _, reason in ipairs(cjson.decode(call('GET', key) or '[]')) do
    if reason.value ~= value and reason['until'] > now then
      reasons[#reasons + 1], last = reason, math.max(last, reason['until'])
    end
  end
  call('SET', key, cjson.encode(reasons), 'PX', last - now)
  call('ZADD', listed, last, shard)
  added = added + 1
end
return added
