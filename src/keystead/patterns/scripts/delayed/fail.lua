#!lua
-- fail: count a failed try of a member; let it wait for another, or put it among the dead letters after the last.
-- KEYS[1]  zset   purgatory
-- KEYS[2]  zset   due
-- KEYS[3]  hash   poison      tries so far, by the member's SHA-1
-- KEYS[4]  list   dead        dead letters, newest right
-- ARGV[1]  bytes  member
-- ARGV[2]  float  at          when it is due again
-- ARGV[3]  int    tries       1..1000
-- ARGV[4]  int    held_ms     how long tries are remembered, counted from the last one
-- ARGV[5]  text   facts       error and time of a dead letter, JSON without its opening brace
-- ARGV[6]  int    most_dead   the oldest letters beyond so many are dropped; 0: none are
-- Returns  tries so far; its negative when the member is dead now; 0 when purgatory does not hold it
-- Cost     O(log(n))          Repeat: not safe; a repeat finds nothing
-- include _crashed
-- include _acquit
local purgatory, due, poison, dead, member, at = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local tries, held_ms, facts, most_dead = tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])

check_types(due, poison, dead)
if redis.call('ZREM', purgatory, member) == 0 then return 0 end
local failed = redis.call('HINCRBY', poison, redis.sha1hex(member), 1)
redis.call('PEXPIRE', poison, held_ms)
if failed < tries then
  redis.call('ZADD', due, at, member)
  return failed
end
acquit(poison, member)
bury_one(dead, member, failed, facts)
if most_dead > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return -failed
