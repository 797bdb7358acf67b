#!lua
-- take_from: move the oldest items of several lists into a worker's purgatory; each is emptied before the next.
-- KEYS[1]    list    purgatory  the worker's own
-- KEYS[2]    hash    poison     items that a worker died with, and how often
-- KEYS[3]    string  alive      the worker's heartbeat
-- KEYS[4]    set     workers    names of workers
-- KEYS[5]    string  closed     while it exists nothing is taken
-- KEYS[6..]  list    queues     same tag; the first is served first
-- ARGV[1]    int     most       1..5000
-- ARGV[2]    text    worker
-- ARGV[3]    int     alive_ms   how long this counts as a sign of life
-- ARGV[4]    int     leftovers  0..1, 1: what lies in purgatory already is returned first
-- ARGV[5]    int     idle       0..1, 0: the worker holds something elsewhere
-- Returns  {how, items}: 0 taken, 1 leftovers, 2 closed, 3 taken while a suspect waits, 4 a suspect, to be alone
-- Cost     O(most + queues), and O(suspects) while there are any
-- Repeat: not safe; after a lost reply the items lie in purgatory
-- include _push
-- include _suspects
local purgatory, poison, alive, workers, closed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local most, worker, alive_ms, leftovers = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4] == '1'
local idle = ARGV[5] == '1'

redis.call('SADD', workers, worker)
redis.call('SET', alive, '1', 'PX', alive_ms)
local held = redis.call('LLEN', purgatory)
if leftovers and held > 0 then return {1, redis.call('LRANGE', purgatory, 0, most - 1)} end
if redis.call('EXISTS', closed) == 1 then return {2, {}} end
for place = 6, #KEYS do redis.call('LLEN', KEYS[place]) end  -- a wrong type must show before anything is removed
local marked = redis.call('EXISTS', poison) == 1
local how, items = 0, {}
for place = 6, #KEYS do
  local want = most - #items
  if want == 0 or how == 4 then break end
  if marked then
    local waits, alone = pick(KEYS[place], poison, items, want, idle and held == 0 and #items == 0)
    how = alone and 4 or (waits and 3 or how)
  else
    local found = redis.call('LRANGE', KEYS[place], 0, want - 1)
    redis.call('LTRIM', KEYS[place], #found, -1)
    for _, item in ipairs(found) do items[#items + 1] = item end
  end
end
push_all('RPUSH', purgatory, items)
return {how, items}
