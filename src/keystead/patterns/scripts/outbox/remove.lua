#!lua
-- remove: delete entries that were delivered from the head of an outbox, and move bad ones to the dead letters.
-- KEYS[1]    list   outbox    oldest at the left
-- KEYS[2]    list   dead      newest right
-- ARGV[1]    int    delivered  0..5000, how many of the following were delivered
-- ARGV[2..]  bytes  entries   delivered ones in their order; then a bad entry and its facts, and so on
-- Returns  how many were removed; the others were removed by another relay
-- Cost     O(entries) when they are the head, else O(entries * outbox)
-- Repeat: not safe; a repeat may remove an equal entry that was added since
-- include _cut
local outbox, dead, delivered = KEYS[1], KEYS[2], tonumber(ARGV[1])

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
local removed = cut_head(outbox, delivered)
for place = 2 + delivered, #ARGV, 2 do
  if redis.call('LREM', outbox, 1, ARGV[place]) == 1 then
    redis.call('RPUSH', dead, '{"attempts":0,' .. ARGV[place + 1] .. '\n' .. ARGV[place])
    removed = removed + 1
  end
end
return removed
