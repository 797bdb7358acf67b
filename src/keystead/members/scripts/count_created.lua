#!lua
-- count_created: count once that somebody joined: in all, by month, by day, and in the cohort of the day.
-- KEYS[1]    string  counted          mark: this person was counted
-- KEYS[2]    string  total            people who ever joined
-- KEYS[3]    string  month            of them in the month
-- KEYS[4]    string  month_earliest   first month that may still be here
-- KEYS[5]    string  day              people who joined that day
-- KEYS[6]    string  day_earliest     first day that may still be here
-- KEYS[7]    hash    day_rotation     rotated_to: the first day that was not rotated yet
-- KEYS[8]    hash    day_late         day by how many came too late
-- KEYS[9]    hash    cohort_rotation  rotated_to
-- KEYS[10]   hash    cohort_late      day by how many joined too late
-- KEYS[11..] any     periods          three each: earliest of those who have not come back, their set, and of the others
-- ARGV[1]    int     held_ms          1..10000000000, how long the mark holds
-- ARGV[2]    int     month_number     0..99999
-- ARGV[3]    int     day_number       0..999999
-- ARGV[4]    text    member
-- Returns  1 when the person was counted now, 0 when that had happened before
-- Cost     O(periods)                 Repeat: safe; the mark says so
local counted, total, month, month_earliest, day = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local day_earliest, day_rotation, day_late = KEYS[6], KEYS[7], KEYS[8]
local cohort_rotation, cohort_late = KEYS[9], KEYS[10]
local held_ms, month_number, day_number, member = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

-- Reads as a number, so that a key that holds anything else stops the script before its first write.
local function read(key, absent)
  return assert(tonumber(redis.call('GET', key) or absent), 'not a number')
end

local function is_rotated(rotation, late)
  redis.call('HGET', late, day_number)
  return day_number < tonumber(redis.call('HGET', rotation, 'rotated_to') or '-1')
end

if redis.call('EXISTS', counted) == 1 then
  return 0
end
local day_gone, cohort_gone = is_rotated(day_rotation, day_late), is_rotated(cohort_rotation, cohort_late)
local lowered, waiting = {}, {}
for _, key in ipairs({total, month, day}) do read(key, 0) end
if month_number < read(month_earliest, 1e9) then lowered[month_earliest] = month_number end
if day_number < read(day_earliest, 1e9) and not day_gone then lowered[day_earliest] = day_number end
for place = 11, #KEYS, 3 do
  local known = redis.call('SISMEMBER', KEYS[place + 1], member) + redis.call('SISMEMBER', KEYS[place + 2], member)
  if known == 0 then waiting[#waiting + 1] = KEYS[place + 1] end
  if day_number < read(KEYS[place], 1e9) and not cohort_gone then lowered[KEYS[place]] = day_number end
end

redis.call('SET', counted, '1', 'PX', held_ms)
for earliest, number in pairs(lowered) do redis.call('SET', earliest, number) end
redis.call('INCR', total)
redis.call('INCR', month)
if day_gone then redis.call('HINCRBY', day_late, day_number, 1) else redis.call('INCR', day) end
if cohort_gone then
  redis.call('HINCRBY', cohort_late, day_number, 1)
else
  for _, set in ipairs(waiting) do redis.call('SADD', set, member) end
end
return 1
