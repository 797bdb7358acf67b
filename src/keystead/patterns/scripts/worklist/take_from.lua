#!lua
-- take_from: as take, from several lists: each is emptied before the next is touched.
-- KEYS[1]    list    purgatory  the worker's own
-- KEYS[2]    hash    poison     items that a worker died with, and how often
-- KEYS[3]    string  alive      the worker's heartbeat
-- KEYS[4]    set     workers    names of workers
-- KEYS[5..]  list    queues     same tag; the first is served first
-- ARGV[1]    int     most       1..5000
-- ARGV[2]    text    worker
-- ARGV[3]    int     alive_ms   how long this counts as a sign of life
-- Returns  {recovered, items}: whether these lay in purgatory already, and the items in the order they were taken
-- Cost     O(most + queues)     Repeat: safe; it returns the same items
-- include _push
-- include _take
local purgatory, poison, alive, workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local most, worker, alive_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3]

redis.call('SADD', workers, worker)
redis.call('SET', alive, '1', 'PX', alive_ms)
local taken = take_items(KEYS[5], purgatory, poison, most, true)
if taken[1] == 1 then return taken end
local items = taken[2]
for place = 6, #KEYS do
  -- A suspect comes alone, so nothing may follow it.
  if #items >= most or (#items > 0 and redis.call('EXISTS', poison) == 1) then break end
  for _, item in ipairs(take_items(KEYS[place], purgatory, poison, most - #items, false)[2]) do
    items[#items + 1] = item
  end
end
return {0, items}
