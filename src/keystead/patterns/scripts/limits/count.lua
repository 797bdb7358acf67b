#!lua
-- count: add a use to each of several windows of one limit, one after another, and say how full each is then.
-- KEYS[1..]  string  windows    counters, the same one more than once too; the expiry of each is the end of its window
-- ARGV[1]    int     most       1..1000000000
-- ARGV[2]    int     length_ms  how long a new window lasts
-- ARGV[3]    int     cost       1..1000000000
-- ARGV[4]    int     mode       0..3, the sum of 1 (each use restarts the window) and 2 (refused uses count)
-- Returns  for each window: uses with this one, ms until it ends; an error where it holds no number
-- Cost     O(windows)           Repeat: not safe; a use whose reply was lost may count twice
local most, length_ms, cost, mode = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local renews, counts_refused = mode % 2 == 1, mode >= 2

local answers = {}
for place, window in ipairs(KEYS) do
  local held = not counts_refused and tonumber(redis.pcall('GET', window)) or 0
  local refused = not counts_refused and held + cost > most
  local uses = refused and held + cost or redis.pcall('INCRBY', window, cost)
  local left_ms = redis.call('PTTL', window)
  -- A counter without an expiry would refuse for ever, so one that lost it gets a new window.
  if type(uses) == 'number' and (left_ms < 0 or (renews and not refused)) then
    redis.call('PEXPIRE', window, length_ms)
    left_ms = length_ms
  end
  answers[2 * place - 1], answers[2 * place] = uses, left_ms
end
return answers
