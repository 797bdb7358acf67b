-- Give the free lock to whoever has waited longest and can be reached; waiters nobody would wake are dropped.
-- Uses lock, waiting, fence, acquired_at, handover_ms, verb, turn. Answers the new holder and its number, or nothing.
local function hand_over(me, lease_ms)
  for _ = 1, 16 do
    local head = redis.call('ZRANGE', waiting, 0, 0)[1]
    if not head then
      return nil
    end
    redis.call('ZREM', waiting, head)
    local uid = string.match(head, '"uid":"([%w_-]+)"')
    if head == me or (uid and redis.call(verb, turn .. uid, 'turn') > 0) then
      local number = fence and redis.call('INCR', fence) or 0
      local value = head .. ',"acquired_at":' .. acquired_at .. (fence and ',"fence":' .. number or '') .. '}'
      redis.call('SET', lock, value, 'PX', head == me and lease_ms or handover_ms)
      return head, number
    end
  end
  return nil
end
