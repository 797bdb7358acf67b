#!lua
-- mend_counts: write counts that were taken page by page, unless anything changed since.
-- KEYS[1]  hash    stat        counts
-- ARGV[1]  text    moves       what recount said of the counts when it was done
-- ARGV[2..] text   truth       place, how many, of each in turn
-- Returns  1 when written, 0 when the queue has changed
-- Cost     O(1)   Repeat: safe; a repeat writes the same or nothing
local stat, call = KEYS[1], redis.call
if redis.sha1hex(table.concat(call('HVALS', stat), ' ')) ~= ARGV[1] then return 0 end
for i = 2, #ARGV, 2 do call('HSET', stat, ARGV[i], ARGV[i + 1]) end
return 1
