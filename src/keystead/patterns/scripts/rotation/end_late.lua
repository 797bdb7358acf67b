#!lua
-- end_late: forget late counts that were put aside and are stored.
-- KEYS[1]  hash  rotation  late_id: the counts that are put aside
-- KEYS[2]  hash  aside
-- ARGV[1]  text  id
-- Returns  1 when they were forgotten now, 0 when this id is not under way
-- Cost     O(1)            Repeat: safe
local rotation, aside, id = KEYS[1], KEYS[2], ARGV[1]

if redis.call('HGET', rotation, 'late_id') ~= id then
  return 0
end
redis.call('UNLINK', aside)
redis.call('HDEL', rotation, 'late_id')
return 1
