local function place(shard)  -- into the ring with something ready, its debt of the last minute with it; else to rest
  if call('HEXISTS', deficit, shard) == 1 then return end
  if call('EXISTS', ready_of:format(shard)) == 0 then return rest(shard) end
  local credit, lapses = string.match(call('HGET', deficit, '~' .. shard) or '', '^(%S+) (%d+)$')
  if credit then call('HDEL', deficit, '~' .. shard) end
  call('HSET', deficit, shard, credit and tonumber(lapses) > now and credit or 0)
  call('RPUSH', ring, shard); call('ZREM', sleep, shard)
  if call('LLEN', bell) == 0 then call('RPUSH', bell, 1) end
end
