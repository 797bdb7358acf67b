#!lua
-- pop: remove members with the lowest scores and their records, and return them.
-- KEYS[1]  zset   index
-- ARGV[1]  float  until     highest score that is taken
-- ARGV[2]  int    most      1..1000
-- ARGV[3]  text   head      a member's record is this, the member, and the tail
-- ARGV[4]  text   tail
-- DERIVES  hash   record    from a member of the index
-- Returns  {repaired, entries}: broken pairs removed, at most 1,000; {member, score, fields} each, lowest first
-- Cost     O((most + repaired) * (fields + log(n)))    Repeat: not safe; what was returned is gone
-- include _pair
local index, limit, most, head, tail = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local entries, repaired = {}, 0
while #entries < most and repaired < 1000 do
  local lowest = redis.call('ZRANGE', index, '-inf', limit, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  local member = lowest[1]
  if not member then break end
  local record = head .. member .. tail
  if whole(index, record, member) then
    entries[#entries + 1] = {member, lowest[2], redis.call('HGETALL', record)}
    redis.call('ZREM', index, member)
    redis.call('DEL', record)
  else
    repaired = repaired + 1
  end
end
return {repaired, entries}
