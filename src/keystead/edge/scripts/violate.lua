#!lua
-- violate: add to an address's violations and set or lengthen its block; a block is never shortened.
-- KEYS[1]  string  violations  counter of weights
-- KEYS[2]  string  blocked     mark of the block; its expiry is the end of the block
-- ARGV[1]  int     weight      1..100
-- ARGV[2]  int     held_ms     how long violations are remembered, counted from the last one
-- ARGV[3]  int     most_ms     longest block allowed now; 0 for none, for an address that many people share
-- ARGV[4]  text    mark        what to write into a new or longer block
-- Returns  {violations, left_ms}: the new sum, and how long the address is blocked from now (0: not, -1: no end)
-- Cost     O(1)                Repeat: not safe; a repeat counts the weight again
local violations, blocked = KEYS[1], KEYS[2]
local weight, held_ms, most_ms, mark = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local MINUTE = 60000
local LADDER = {{80, 7 * 24 * 60 * MINUTE}, {40, 24 * 60 * MINUTE}, {20, 60 * MINUTE}, {10, 15 * MINUTE}}

local left_ms = redis.call('PTTL', blocked)
local sum = redis.call('INCRBY', violations, weight)
redis.call('PEXPIRE', violations, held_ms)
local block_ms = 0
for _, step in ipairs(LADDER) do
  if sum >= step[1] then
    block_ms = math.min(step[2], most_ms)
    break
  end
end
if left_ms ~= -1 and block_ms > left_ms and block_ms > 0 then
  redis.call('SET', blocked, mark, 'PX', block_ms)
  left_ms = block_ms
end
if left_ms == -2 then
  left_ms = 0
end
return {sum, left_ms}
