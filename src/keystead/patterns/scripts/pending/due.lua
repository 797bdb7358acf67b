#!lua
-- due: return members up to a score with their records and change nothing, except that broken pairs are removed.
-- KEYS[1]  zset   index
-- ARGV[1]  float  until     highest score that is read
-- ARGV[2]  int    most      1..1000
-- ARGV[3]  text   head      a member's record is this, the member, and the tail
-- ARGV[4]  text   tail
-- DERIVES  hash   record    from a member of the index
-- Returns  {repaired, entries}: broken pairs removed; {member, score, fields} each, lowest first
-- Cost     O(most * fields)    Repeat: safe
-- include _pair
local index, limit, most, head, tail = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local entries, repaired = {}, 0
local found = redis.call('ZRANGE', index, '-inf', limit, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
for place = 1, #found, 2 do
  local member = found[place]
  local record = head .. member .. tail
  if whole(index, record, member) then
    entries[#entries + 1] = {member, found[place + 1], redis.call('HGETALL', record)}
  else
    repaired = repaired + 1
  end
end
return {repaired, entries}
