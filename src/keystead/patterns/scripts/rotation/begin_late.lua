#!lua
-- begin_late: put counts that came late aside, so that they can be stored while more may come.
-- KEYS[1]  hash  rotation  late_id: the counts that are put aside
-- KEYS[2]  hash  late      counts by field
-- KEYS[3]  hash  aside
-- ARGV[1]  text  id        for new ones
-- Returns  {id, fields and counts}, those of an older id if they were put aside before; nil if nothing came late
-- Cost     O(fields)       Repeat: safe
local rotation, late, aside, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local under_way = redis.call('HGET', rotation, 'late_id')
if under_way then
  return {under_way, redis.call('HGETALL', aside)}
end
if redis.call('EXISTS', late) == 0 then
  return nil
end
redis.call('HSET', rotation, 'late_id', id)
redis.call('RENAME', late, aside)
return {id, redis.call('HGETALL', aside)}
