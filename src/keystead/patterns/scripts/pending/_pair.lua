-- Whether index and record are both there; a pair of which one half is missing or of another type is removed.
local function whole(index, record, member)
  local score = redis.call('ZSCORE', index, member)
  if score and redis.call('TYPE', record).ok == 'hash' then return true end
  redis.call('ZREM', index, member)
  redis.call('DEL', record)
  return false
end
