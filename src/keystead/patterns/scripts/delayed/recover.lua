#!lua
-- recover: return what a worker's purgatory holds to the set of waiting members; an earlier time there wins.
-- KEYS[1]  zset   purgatory
-- KEYS[2]  zset   due
-- KEYS[3]  hash   poison      crashes so far, by the member's SHA-1
-- KEYS[4]  list   dead        dead letters, newest right
-- ARGV[1]  float  not_before  returned members are due at this time or their own, whichever is later
-- ARGV[2]  int    tries       1..1000
-- ARGV[3]  int    held_ms     how long crashes are remembered, counted from the last one
-- ARGV[4]  text   facts       error and time of a dead letter, JSON without its opening brace
-- ARGV[5]  int    most_dead   the oldest letters beyond so many are dropped; 0: none are
-- Returns  {members, dead}: how many wait again, how many became dead letters
-- Cost     O(members * log(n))    Repeat: safe; what was returned is no longer there
-- include _crashed
local purgatory, due, poison, dead, not_before = KEYS[1], KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[1])
local tries, held_ms, facts, most_dead = tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

check_types(due, poison, dead)
local left, buried = return_all(purgatory, due, poison, dead, not_before, tries, held_ms, facts)
if most_dead > 0 and buried > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return {left, buried}
