local function make_ready(shard, id)  -- by priority, then by when it was first stored
  local facts = call('HMGET', items_of:format(shard), id .. '#t', id .. '#p')
  call('ZADD', ready_of:format(shard), (9 - tonumber(facts[2] or 5)) * 2 ^ 42 + (facts[1] or now) - 1577836800000, id)
  call('HINCRBY', stat, 'ready', 1)
end
