#!lua
-- deliver: push entries onto a list, each of which was not delivered before; the mark and the push are one step.
-- KEYS[1]    list    target
-- KEYS[2..]  string  marks    same tag; one for each entry
-- ARGV[1]    int     held_ms  how long a mark is remembered
-- ARGV[2]    int     limit    nothing is pushed if the list would grow longer than this; -1: no limit
-- ARGV[3..]  bytes   entries  in their order
-- Returns  how many were new and are pushed; -1 when there is no room
-- Cost     O(entries)         Repeat: safe; the marks tell
local target, held_ms, limit = KEYS[1], ARGV[1], tonumber(ARGV[2])

local new = {}
local length = redis.call('LLEN', target)
for place = 2, #KEYS do
  if redis.call('EXISTS', KEYS[place]) == 0 and not new[KEYS[place]] then
    new[#new + 1] = place
    new[KEYS[place]] = true
  end
end
if limit >= 0 and #new > 0 and length + #new > limit then return -1 end
for _, place in ipairs(new) do
  redis.call('SET', KEYS[place], '1', 'PX', held_ms)
  redis.call('RPUSH', target, ARGV[place + 1])
end
return #new
