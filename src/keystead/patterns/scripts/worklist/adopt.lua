#!lua
-- adopt: return what dead workers hold to the front of the queue, each list in its order.
-- KEYS[1]  list  queue
-- KEYS[2]  set   workers    names of workers
-- KEYS[3]  hash  poison     crashes so far, by the item's SHA-1
-- KEYS[4]  list  dead       dead letters, newest right
-- ARGV[1]  text  purgatory_head  a worker's purgatory is this, its name, and the tail
-- ARGV[2]  text  purgatory_tail
-- ARGV[3]  text  alive_head      likewise for its heartbeat
-- ARGV[4]  text  alive_tail
-- ARGV[5]  int   tries      1..1000
-- ARGV[6]  int   held_ms    how long crashes are remembered, counted from the last one
-- ARGV[7]  text  facts      error and time of a dead letter, JSON without its opening brace
-- ARGV[8]  int   most_dead  the oldest letters beyond so many are dropped; 0: none are
-- DERIVES  list  purgatory  from a name in workers
-- DERIVES  string  alive    from a name in workers
-- Returns  {workers, items, dead}: how many workers were adopted, items returned, items that became dead letters
-- Cost     O(workers + items); with 5,000 items it ends, and leaves other dead workers to the next call
-- Repeat: safe; what was adopted is no longer there
-- include _push
-- include _crashed
local queue, workers, poison, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tries, held_ms, facts, most_dead = tonumber(ARGV[5]), ARGV[6], ARGV[7], tonumber(ARGV[8])

redis.call('LLEN', queue)  -- a wrong type must show before anything is removed
redis.call('LLEN', dead)
local names, items, gone, buried = redis.call('SMEMBERS', workers), 0, 0, 0
table.sort(names, function(a, b) return a > b end)  -- the first name ends up foremost
for _, name in ipairs(names) do
  if items + buried >= 5000 then break end
  if redis.call('EXISTS', ARGV[3] .. name .. ARGV[4]) == 0 then
    local purgatory = ARGV[1] .. name .. ARGV[2]
    local left, letters = accuse(redis.call('LRANGE', purgatory, 0, -1), poison, dead, tries, held_ms, facts, true)
    push_all('LPUSH', queue, reversed(left))
    redis.call('DEL', purgatory)
    redis.call('SREM', workers, name)
    gone, items, buried = gone + 1, items + #left, buried + letters
  end
end
if most_dead > 0 and buried > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return {gone, items, buried}
