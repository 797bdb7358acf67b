#!lua
-- take_distinct: as take, with a set as purgatory: equal rows of one batch become one.
-- KEYS[1]  list   buffer     oldest at the left
-- KEYS[2]  set    purgatory  the one batch that is being stored
-- KEYS[3]  hash   batch      id, taken_at, handed_out
-- ARGV[1]  int    most       1..5000
-- ARGV[2]  text   fresh      identifier for a new batch
-- ARGV[3]  float  now
-- Returns  {id, handed_out, popped, rows}; an empty array when there is nothing. popped: rows moved by this call
-- Cost     O(most)           Repeat: safe; the same batch is returned under the same identifier
-- include _batch
local buffer, purgatory, batch = KEYS[1], KEYS[2], KEYS[3]
local most, fresh, now = tonumber(ARGV[1]), ARGV[2], ARGV[3]

local rows, popped = redis.call('SMEMBERS', purgatory), 0
if #rows == 0 then
  local oldest = redis.call('LRANGE', buffer, 0, most - 1)
  popped = #oldest
  if popped == 0 then return {} end
  redis.call('DEL', batch)
  redis.call('LTRIM', buffer, popped, -1)
  for first = 1, popped, 1000 do
    redis.call('SADD', purgatory, unpack(oldest, first, math.min(first + 999, popped)))
  end
  rows = redis.call('SMEMBERS', purgatory)
end
local id, times = handed_out(batch, fresh, now)
return {id, times, popped, rows}
