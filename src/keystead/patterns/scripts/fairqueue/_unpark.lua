local function unpark(shard, id)  -- forget that an item is parked
  local items = items_of:format(shard)
  local name = call('HGET', items, id .. '#k')
  call('HDEL', items, id .. '#k')
  call('HDEL', park_of:format(name), id)
  call('ZREM', parked, shard .. '\0' .. id .. '\0' .. name)
  if call('HINCRBY', items, '!parked', -1) <= 0 then call('HDEL', items, '!parked') end
  call('HINCRBY', stat, 'parked', -1)
end
