#!lua
-- check_all: judge one use of each of several limits; count it on all of them if all allow it, else on none.
-- KEYS[1..]  any   limits
-- ARGV[1]    int   now     microseconds of unix time
-- ARGV[2]    int   counts  0..1, 0 only looks
-- ARGV[3..]  text  rules   for each limit: its kind and five values, as the fragment of that kind takes them
-- Returns  {1 if all allow it, {allowed, remaining, retry_ms, reset_ms, start in microseconds} for each limit}
-- Cost     O(limits), logs O(log of their size)  Repeat: not safe; a use whose reply was lost may count twice
-- include _counter
-- include _log
-- include _distinct
-- include _timeline
-- include _answer
local now, counts = tonumber(ARGV[1]), ARGV[2] == '1'
local judges = {counter = counter, log = log, distinct = distinct, timeline = timeline}

local answers, writes, all = {}, {}, 1
for place, key in ipairs(KEYS) do
  local kind = 6 * place - 3
  local found = {judges[ARGV[kind]](key, now, unpack(ARGV, kind + 1, kind + 5))}
  answers[place], writes[place] = answer(unpack(found, 1, 5)), found[6]
  if not found[1] then all = 0 end
end
for _, write in ipairs(all == 1 and counts and writes or {}) do write() end
return {all, answers}
