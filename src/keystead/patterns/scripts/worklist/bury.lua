#!lua
-- bury: move items from purgatory to the dead letters.
-- KEYS[1]    list   purgatory
-- KEYS[2]    list   dead       newest right
-- KEYS[3]    hash   poison     their tries are forgotten
-- ARGV[1]    int    most_dead  the oldest letters beyond so many are dropped; 0: none are
-- ARGV[2..]  bytes  pairs      an item, then its facts (error and time, JSON without the opening brace); and so on
-- Returns  how many were moved; the others were not in purgatory any more
-- Cost     O(items * purgatory)
-- Repeat: safe; what has been moved is not in purgatory
-- include _push
-- include _crashed
local purgatory, dead, poison, most_dead = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1])

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
redis.call('HLEN', poison)
local letters = {}
for place = 2, #ARGV, 2 do
  local item = ARGV[place]
  if redis.call('LREM', purgatory, 1, item) == 1 then
    local mark = redis.sha1hex(item)
    local tries = tonumber(redis.call('HGET', poison, mark) or '0')
    redis.call('HDEL', poison, mark, 'crashed:' .. mark)
    letters[#letters + 1] = letter(item, tries, ARGV[place + 1])
  end
end
push_all('RPUSH', dead, letters)
if most_dead > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return #letters
