-- A sign of life, on the server before anything is taken; KEYS from the fourth on, none for the default worker.
local function show_life(worker, alive_ms)
  if #KEYS < 5 then return end
  redis.call('SADD', KEYS[5], worker)
  redis.call('SET', KEYS[4], '1', 'PX', alive_ms)
end
