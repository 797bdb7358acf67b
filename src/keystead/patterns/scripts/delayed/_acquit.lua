-- A settled member is no suspect any more.
local function acquit(poison, member)
  local mark = redis.sha1hex(member)
  redis.call('HDEL', poison, mark, 'crashed:' .. mark)
end
