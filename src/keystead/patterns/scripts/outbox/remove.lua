#!lua
-- remove: delete entries that were delivered from the head of an outbox, and move bad ones to the dead letters.
-- KEYS[1]    list   outbox    oldest at the left
-- KEYS[2]    list   dead      newest right
-- ARGV[1]    int    seen       1..5000, how many were read from the head; what is still there is still among as many
-- ARGV[2]    int    delivered  0..5000, how many of the following were delivered
-- ARGV[3..]  bytes  entries   delivered ones in their order; then a bad entry and its facts, and so on
-- Returns  how many were removed; the others were removed by another relay
-- Cost     O(seen)
-- Repeat: not safe; a repeat may remove an equal entry that was added since
local outbox, dead, seen, delivered = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local done, bad, kept = {}, {}, {}
for place = 3, 2 + delivered do done[ARGV[place]] = (done[ARGV[place]] or 0) + 1 end
for place = 3 + delivered, #ARGV, 2 do bad[ARGV[place]] = ARGV[place + 1] end

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
local head = redis.call('LRANGE', outbox, 0, seen - 1)
for _, entry in ipairs(head) do
  if (done[entry] or 0) > 0 then
    done[entry] = done[entry] - 1
  elseif bad[entry] then
    redis.call('RPUSH', dead, '{"attempts":0,' .. bad[entry] .. '\n' .. entry)
  else
    kept[#kept + 1] = entry
  end
end
if #kept == #head then return 0 end
redis.call('LTRIM', outbox, #head, -1)
for place = #kept, 1, -1 do redis.call('LPUSH', outbox, kept[place]) end
return #head - #kept
