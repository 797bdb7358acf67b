#!lua
-- recurring_update: let exactly the jobs of a list wait for their next run, unless another list has more right to it.
-- KEYS[1]    zset    waiting
-- KEYS[2]    string  hash        of the list in force
-- KEYS[3]    set     purgatory   of loops of the older kind
-- KEYS[4]    hash    last
-- KEYS[5]    string  version     of the list in force, and its hash
-- KEYS[6]    hash    names
-- ARGV[1]    text    list        hash of the list
-- ARGV[2]    int     number      0..9007199254740991
-- ARGV[3]    int     begins      0..1
-- ARGV[4]    float   deserted    nobody serves a list whose first job was due by then
-- ARGV[5..]  text    jobs        four of each: hash, the score it was seen with or nothing, the score it gets, name
-- Returns  ours; moved: look again, a job has another score; older: a newer list is in force; aside: a list with the
--          same number was put in force by a loop that began later
-- Cost     O(jobs * log(jobs))    Repeat: safe; it answers moved
local waiting, hash, purgatory, last, version, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local list, number, begins, deserted = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])

local stored = redis.call('GET', hash)
local in_force, of = string.match(redis.call('GET', version) or '', '^(%d+):(%d+)$')
in_force = tonumber(in_force or '-1')
if in_force > number and stored ~= list then return 'older' end
-- Where the hash is not the one that the version was written with, a loop of the older kind has put its list there.
if stored and stored ~= list and stored == of and in_force == number and not begins then
  local first = redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')
  if first[1] and tonumber(first[2]) > deserted then return 'aside' end
end
local wanted = {}
for at = 5, #ARGV, 4 do
  if tonumber(redis.call('ZSCORE', waiting, ARGV[at]) or '') ~= tonumber(ARGV[at + 1]) then return 'moved' end
  wanted[ARGV[at]] = true
end

redis.call('DEL', purgatory, names)
for at = 5, #ARGV, 4 do
  redis.call('ZADD', waiting, ARGV[at + 2], ARGV[at])
  redis.call('HSET', names, ARGV[at], ARGV[at + 3])
end
for _, job in ipairs(redis.call('ZRANGE', waiting, 0, -1)) do
  if not wanted[job] then redis.call('ZREM', waiting, job) end
end
for _, job in ipairs(redis.call('HKEYS', last)) do
  if not wanted[job] then redis.call('HDEL', last, job) end
end
redis.call('SET', hash, list)
if in_force <= number then redis.call('SET', version, ARGV[2] .. ':' .. list) end
return 'ours'
