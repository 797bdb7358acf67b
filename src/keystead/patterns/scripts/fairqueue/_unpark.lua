local function unpark(shard, id)  -- forget that an item is parked; gives nothing where it is not
  local items = items_of:format(shard)
  local name, since = string.match(call('HGET', items, id .. '#k') or '', '^(%Z+)%z(%d+)$')
  if not name then return end
  call('HDEL', items, id .. '#k')
  call('HDEL', park_of:format(name), id)
  call('ZREM', parked, shard .. '\0' .. id .. '\0' .. name)
  call('ZREM', order, name .. '\0' .. since .. '\0' .. id .. '\0' .. shard)
  if call('HINCRBY', items, '!parked', -1) <= 0 then call('HDEL', items, '!parked') end
  call('HINCRBY', stat, 'parked', -1)
  return true
end
