#!lua
-- take_stale: return members whose time has come with their records, count that, and put each off to a later time.
-- KEYS[1]  zset   index
-- ARGV[1]  float  now
-- ARGV[2]  float  later       new score of those returned
-- ARGV[3]  int    most        1..1000
-- ARGV[4]  text   head        a member's record is this, the member, and the tail
-- ARGV[5]  text   tail
-- ARGV[6]  text   changes     field that counts changes; empty: none does
-- ARGV[7]  text   failures    field that counts how often it was stale; empty: none does
-- ARGV[8]  text   called_at   field that holds when it last was; empty: none does
-- DERIVES  hash   record      from a member of the index
-- Returns  {repaired, entries}: broken pairs removed, at most 1,000; {member, score before, fields after this step} each,
--          lowest first
-- Cost     O((most + repaired) * (fields + log(n)))    Repeat: not safe; a repeat returns others
-- include _pair
local index, now, later, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local head, tail, changes, failures, called_at = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local entries, repaired = {}, 0
while #entries < most and repaired < 1000 do
  local lowest = redis.call('ZRANGE', index, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  local member = lowest[1]
  if not member then break end
  local record = head .. member .. tail
  if whole(index, record, member) then
    redis.call('ZADD', index, later, member)
    if called_at ~= '' then redis.call('HSET', record, called_at, now) end
    -- A count that is no number must not stop the others: the record is returned as it is, and does not decode.
    if failures ~= '' then redis.pcall('HINCRBY', record, failures, 1) end
    if changes ~= '' then redis.pcall('HINCRBY', record, changes, 1) end
    entries[#entries + 1] = {member, lowest[2], redis.call('HGETALL', record)}
  else
    repaired = repaired + 1
  end
end
return {repaired, entries}
