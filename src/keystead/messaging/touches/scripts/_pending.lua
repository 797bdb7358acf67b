-- Index entry, record and set of what remains are there together, or not at all.
local function end_touch(index, record, remaining, uid)
  redis.call('ZREM', index, uid)
  redis.call('DEL', record)
  redis.call('DEL', remaining)
end

-- Whether all three are there and of their types.
local function is_pending(index, record, remaining, uid)
  return redis.call('ZSCORE', index, uid) and redis.call('TYPE', record).ok == 'hash'
    and redis.call('TYPE', remaining).ok == 'set'
end
