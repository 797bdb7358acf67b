-- What a dead letter is: one line of facts, then the member byte for byte.
local function bury_one(dead, member, attempts, facts)
  redis.call('RPUSH', dead, '{"attempts":' .. string.format('%d', attempts) .. ',' .. facts .. '\n' .. member)
end

-- Return everything in purgatory to the waiting members and count a crash against each; with too many it becomes a dead
-- letter. One that may crash once more only is marked: its last try is made alone. Gives how many wait, how many died.
local function return_all(purgatory, due, poison, dead, not_before, tries, held_ms, facts)
  local held, buried = redis.call('ZRANGE', purgatory, 0, -1, 'WITHSCORES'), 0
  for place = 1, #held, 2 do
    local member, score = held[place], held[place + 1]
    local mark = redis.sha1hex(member)
    local crashes = redis.call('HINCRBY', poison, mark, 1)
    if crashes >= tries then
      redis.call('HDEL', poison, mark, 'crashed:' .. mark)
      bury_one(dead, member, crashes, facts)
      buried = buried + 1
    else
      if crashes >= tries - 1 then redis.call('HSET', poison, 'crashed:' .. mark, '1') end
      if tonumber(score) < not_before then score = string.format('%.17g', not_before) end
      redis.call('ZADD', due, 'LT', score, member)
    end
  end
  if #held > 0 then redis.call('PEXPIRE', poison, held_ms) end
  redis.call('DEL', purgatory)
  return #held / 2 - buried, buried
end

local function check_types(due, poison, dead)  -- a wrong type must show before anything is removed
  redis.call('ZCARD', due)
  redis.call('HLEN', poison)
  redis.call('LLEN', dead)
end
