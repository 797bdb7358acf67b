local function look_soon(shard)  -- have whoever comes next look at a shard outside the ring
  if call('HEXISTS', deficit, shard) == 1 then return end
  call('ZADD', sleep, now, shard)
  if call('LLEN', bell) == 0 then call('RPUSH', bell, 1) end
end
