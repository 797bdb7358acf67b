#!lua
-- adopt: return what dead workers hold to the set of waiting members; an earlier time that waits there wins.
-- KEYS[1]  zset  due
-- KEYS[2]  set   workers    names of workers
-- KEYS[3]  hash  poison     crashes so far, by the member's SHA-1
-- KEYS[4]  list  dead       dead letters, newest right
-- ARGV[1]  text  purgatory_head  a worker's purgatory is this, its name, and the tail
-- ARGV[2]  text  purgatory_tail
-- ARGV[3]  text  alive_head      likewise for its heartbeat
-- ARGV[4]  text  alive_tail
-- ARGV[5]  float  not_before     returned members are due at this time or their own, whichever is later
-- ARGV[6]  int   tries      1..1000
-- ARGV[7]  int   held_ms    how long crashes are remembered, counted from the last one
-- ARGV[8]  text  facts      error and time of a dead letter, JSON without its opening brace
-- ARGV[9]  int   most_dead  the oldest letters beyond so many are dropped; 0: none are
-- DERIVES  zset  purgatory  from a name in workers
-- DERIVES  string  alive    from a name in workers
-- Returns  {workers, members, dead}: how many workers were adopted, members that wait again, members that died
-- Cost     O(workers + members * log(n)); with 3,000 members it ends, and leaves other dead workers to the next call
-- Repeat: safe; what was adopted is no longer there
-- include _crashed
local due, workers, poison, dead, not_before = KEYS[1], KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[5])
local tries, held_ms, facts, most_dead = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])

check_types(due, poison, dead)
local names, gone, members, buried = redis.call('SMEMBERS', workers), 0, 0, 0
table.sort(names)
for _, name in ipairs(names) do
  if members + buried >= 3000 then break end
  if redis.call('EXISTS', ARGV[3] .. name .. ARGV[4]) == 0 then
    local purgatory = ARGV[1] .. name .. ARGV[2]
    local left, died = return_all(purgatory, due, poison, dead, not_before, tries, held_ms, facts)
    redis.call('SREM', workers, name)
    gone, members, buried = gone + 1, members + left, buried + died
  end
end
if most_dead > 0 and buried > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return {gone, members, buried}
