-- Ready values onto the lists in KEYS from the third on; one value for each list.
local function push_ready(first)
  for place = 3, #KEYS do
    redis.call('RPUSH', KEYS[place], ARGV[first + place - 3])
  end
end

local function check_lists()
  for place = 3, #KEYS do redis.call('LLEN', KEYS[place]) end
end
