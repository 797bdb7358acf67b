#!lua
-- bury: move rows of the batch with this identifier from purgatory to the dead letters.
-- KEYS[1]    any    purgatory  list or set
-- KEYS[2]    hash   batch      id, taken_at, handed_out
-- KEYS[3]    list   dead       newest right
-- ARGV[1]    text   id
-- ARGV[2]    int    most_dead  the oldest letters beyond so many are dropped; 0: none are
-- ARGV[3..]  bytes  pairs      a row, then its facts (error and time, JSON without the opening brace); and so on
-- Returns  how many were moved
-- Cost     O(rows * purgatory)
-- Repeat: safe; what has been moved is not in purgatory
local purgatory, batch, dead, id, most_dead = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])

redis.call('LLEN', dead)  -- a wrong type must show before anything is removed
local moved = 0
if redis.call('HGET', batch, 'id') ~= id then return moved end
local is_set = redis.call('TYPE', purgatory).ok == 'set'
local times = redis.call('HGET', batch, 'handed_out') or '0'
for place = 3, #ARGV, 2 do
  local row = ARGV[place]
  local held = is_set and redis.call('SREM', purgatory, row) or not is_set and redis.call('LREM', purgatory, 1, row)
  if held == 1 then
    redis.call('RPUSH', dead, '{"attempts":' .. times .. ',' .. ARGV[place + 1] .. '\n' .. row)
    moved = moved + 1
  end
end
if redis.call('EXISTS', purgatory) == 0 then redis.call('DEL', batch) end
if most_dead > 0 then redis.call('LTRIM', dead, -most_dead, -1) end
return moved
