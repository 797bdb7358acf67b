local ring, deficit, sleep, stat, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, now, ready_of, delayed_of = redis.call, tonumber(ARGV[1]), ARGV[2], ARGV[3]
local leased_of, items_of = ARGV[4], ARGV[5]
local function first(key) return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or 'inf') end
local function rest(shard, blocked_until)  -- sleep until it is worth a look; with nothing to look for, forget it
  local look = math.min(first(leased_of:format(shard)), first(delayed_of:format(shard)), blocked_until or math.huge)
  if look < math.huge then call('ZADD', sleep, look, shard) else call('ZREM', sleep, shard) end
end
