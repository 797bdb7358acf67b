-- Free the lock if it is still the one that ``token`` names: a later holder's lock ends at another instant.
local function release(lock, token)
  if token ~= '' and redis.call('GET', lock) == '1' and
     string.format('%.0f', redis.call('PEXPIRETIME', lock)) == token then
    redis.call('DEL', lock)
  end
end
