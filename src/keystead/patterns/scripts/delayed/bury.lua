#!lua
-- bury: move members from a sorted set to the dead letters.
-- KEYS[1]    zset   held       a purgatory; or the waiting members, where they are claimed without one
-- KEYS[2]    list   dead       newest right
-- KEYS[3]    hash   poison     their crashes are forgotten
-- ARGV[1]    int    most_dead  the oldest letters beyond so many are dropped; 0: none are
-- ARGV[2..]  bytes  pairs      a member, then its facts (error and time, JSON without the opening brace); and so on
-- Returns  how many were moved; the others were not there any more
-- Cost     O(members * log(n))
-- Repeat: safe; what has been moved is not there
-- include _crashed
-- include _acquit
local held, dead, poison, most_dead, moved = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), 0

check_types(held, poison, dead)
for place = 2, #ARGV, 2 do
  local member = ARGV[place]
  if redis.call('ZREM', held, member) == 1 then
    bury_one(dead, member, tonumber(redis.call('HGET', poison, redis.sha1hex(member)) or 0), ARGV[place + 1])
    acquit(poison, member)
    moved = moved + 1
  end
end
if most_dead > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return moved
