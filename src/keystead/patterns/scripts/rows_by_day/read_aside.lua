#!lua
-- read_aside: some rows that are still to be rotated, with their counts.
-- KEYS[1]  hash  rotation  id and unix_date of the rotation under way
-- KEYS[2]  set   aside     rows that are still to be rotated
-- ARGV[1]  int   day       0..999999
-- ARGV[2]  text  id        of the rotation
-- ARGV[3]  int   most      1..10000
-- ARGV[4]  text  head      of the name of a row's counts, before the row
-- ARGV[5]  text  tail      after it
-- DERIVES  hash  counts    of each row
-- Returns  {row, {field, amount ...} ...}, empty when none is left; nil when this rotation is not under way
-- Cost     O(most)         Repeat: safe
local rotation, aside, day, id, most = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local head, tail = ARGV[4], ARGV[5]
-- include _read

local under_way = redis.call('HMGET', rotation, 'unix_date', 'id')
if under_way[1] ~= day or under_way[2] ~= id then
  return nil
end
return with_counts(redis.call('SRANDMEMBER', aside, most), head, tail)
