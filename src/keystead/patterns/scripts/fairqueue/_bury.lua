local function bury(shard, id)  -- the dead are looked at half a day before they would expire, when crowded at once
  local dead = dead_of:format(shard)
  call('ZADD', dead, now, id); call('PEXPIRE', dead, 604800000); call('HINCRBY', stat, 'dead', 1)
  call('ZADD', sleep, 'LT', call('ZCARD', dead) > 1000 and now or now + 561600000, '~' .. shard)
end
