local function drop(shard, id)  -- forget an item: its body, its facts and its index entries
  local items = items_of:format(shard)
  for field, value in string.gmatch(call('HGET', items, id .. '#f') or '', '(%Z+)%z(%Z*)%z') do
    call('ZREM', index_of:format(field), value .. '\0' .. shard .. '\0' .. id)
  end
  call('HDEL', items, id, id .. '#c', id .. '#a', id .. '#t', id .. '#p', id .. '#f', id .. '#k')
end
