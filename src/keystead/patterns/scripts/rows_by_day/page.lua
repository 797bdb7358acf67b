#!lua
-- page: some rows of a day with their counts, from a cursor on.
-- KEYS[1]  set   rows    of the day
-- ARGV[1]  text  cursor  0 to begin with
-- ARGV[2]  int   most    1..10000, about how many
-- ARGV[3]  text  head    of the name of a row's counts, before the row
-- ARGV[4]  text  tail    after it
-- DERIVES  hash  counts  of each row
-- Returns  {next cursor, 0 at the end; {row, {field, amount ...} ...}}
-- Cost     O(most)       Repeat: safe
local rows, cursor, most, head, tail = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- include _read

local found = redis.call('SSCAN', rows, cursor, 'COUNT', most)
return {found[1], with_counts(found[2], head, tail)}
